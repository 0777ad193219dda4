//! Proof that the wallet is the user's: a message that its holder signs.

use maud::html;

use super::{Content, Visit};
use crate::Core;
use crate::http::form::Form;
use crate::http::html::components::{Field, copy_button, field, time_in};
use crate::http::html::form_errors::{FormErrors, TypedForm};
use crate::platform::db::Connection;
use crate::platform::error::{Error, Result};
use crate::trading::wallet_proof::challenge::Challenge;
use crate::trading::wallet_proof::{self, Proof, signature};
use rampart_types::{Chain, CurrencyCode, OrderKey, WalletAddress};

/// The message to sign, and the form for the signature.
pub(super) async fn show(
    conn: &mut Connection,
    core: &Core,
    visit: &Visit,
    TypedForm { form, errors }: TypedForm<'_>,
) -> Result<Content> {
    let (wallet, order) = named(visit)?;
    let texts = visit.texts;
    if !signature::is_supported(wallet.chain()) {
        let body = html! {
            p { (texts.get("check-wallet-unsupported")) }
            p { (visit.support_link("support-link")) }
        };
        return Ok(body.into());
    }
    let challenge = Challenge::current(conn, core, order, visit.user, wallet.as_str()).await?;
    let how = match wallet.chain() {
        Chain::Ethereum => "check-wallet-how-evm",
        Chain::Bitcoin => "check-wallet-how-bitcoin",
        _ => "check-wallet-how",
    };
    let body = html! {
        p { (texts.get("check-wallet-intro")) }
        dl {
            dt { (texts.get("term-wallet")) } dd { (wallet.as_str()) }
            dt { (texts.get("check-wallet-message")) }
            dd { code { (challenge.message) } " " (copy_button(&challenge.message)) }
            dt { (texts.get("check-wallet-until")) } dd { (time_in(texts, challenge.expires_at)) }
        }
        p { (texts.get(how)) }
        form method="post" {
            input type="hidden" name="nonce" value=(challenge.nonce);
            (field(&Field {
                value: form.get("signature"),
                error: errors.of("signature"),
                is_verbatim: true,
                ..Field::text("signature", &texts.get("check-wallet-signature"))
            }))
            button.main type="submit" { (texts.get("check-wallet-prove")) }
        }
    };
    Ok(body.into())
}

/// Takes the signature. A wrong one leaves the message good.
pub(super) async fn submit(
    conn: &mut Connection,
    core: &Core,
    visit: &Visit,
    form: &Form,
) -> Result<FormErrors> {
    let (wallet, order) = named(visit)?;
    let Some(message) = Challenge::redeem(conn, order, form.get("nonce")).await? else {
        return Ok(refused(visit, "check-wallet-expired"));
    };
    let signature = form.get("signature");
    if !signature::is_genuine(&wallet, &message, signature) {
        return Ok(refused(visit, "check-wallet-wrong"));
    }
    let proof = Proof::Signature { message: &message, signature: signature.trim() };
    wallet_proof::record(conn, core, order, proof).await?;
    Ok(FormErrors::default())
}

/// A message about the signature.
fn refused(visit: &Visit, message: &'static str) -> FormErrors {
    FormErrors::one("signature", visit.texts.get(message))
}

/// The order of the page, and its wallet.
fn named(visit: &Visit) -> Result<(WalletAddress, OrderKey)> {
    let invalid = || Error::invariant("read an order's wallet");
    let order = visit.order.as_ref().ok_or_else(invalid)?;
    let code: Option<CurrencyCode> = order.asset.parse().ok();
    let currency = code.and_then(|code| visit.client.catalogue.currencies.get(&code));
    let chain = currency.and_then(|currency| currency.crypto.as_ref()).map(|crypto| crypto.chain);
    let wallet = chain.and_then(|chain| WalletAddress::parse(chain, &order.wallet_address).ok());
    let key = OrderKey { client: visit.client.id(), order: order.id };
    Ok((wallet.ok_or_else(invalid)?, key))
}
