//! Proof that the wallet is the user's: a message that its holder signs.

use maud::html;

use super::{Content, Visit};
use crate::Core;
use crate::http::form::Form;
use crate::platform::db::Connection;
use crate::platform::error::{Error, Result};
use crate::trading::wallet_proof::challenge::Challenge;
use crate::trading::wallet_proof::{self, Proof, signature};
use rampart_types::{Chain, CurrencyCode, WalletAddress};

const EXPIRED: &str = "The message was used or has expired. Please sign the new one.";
const WRONG: &str = "This is not a signature of the message by the wallet's key.";

/// The message to sign, and the form for the signature.
pub(super) async fn show(conn: &mut Connection, core: &Core, visit: &Visit) -> Result<Content> {
    let (wallet, order) = (wallet(visit)?, (visit.client.id(), visit.order));
    if !signature::is_supported(wallet.chain()) {
        let body = html! {
            p { "Wallets of this coin cannot sign a message that we can check." }
            p { a href="/support" { "Ask support" } " to look at other proof." }
        };
        return Ok(body.into());
    }
    let challenge = Challenge::current(conn, core, order, (visit.user, wallet.as_str())).await?;
    let how = match wallet.chain() {
        Chain::Ethereum => "Sign it with your wallet (personal_sign), and paste the signature.",
        Chain::Bitcoin => {
            "Sign it with your wallet (BIP-322 or the older form), and paste the signature."
        }
        _ => "Sign it with your wallet, and paste the signature.",
    };
    let body = html! {
        p { "Please prove that the wallet is yours: sign this message, exactly as it is." }
        dl {
            dt { "Wallet" } dd { (wallet.as_str()) }
            dt { "Message" } dd { code { (challenge.message) } }
        }
        p { (how) " The message is good until " (challenge.expires_at.format("%H:%M UTC")) "." }
        form method="post" {
            input type="hidden" name="nonce" value=(challenge.nonce);
            label {
                "Signature"
                input name="signature" autocomplete="off" required
                    maxlength=(signature::SIGNATURE_BYTES_MAX);
            }
            button.main type="submit" { "Prove it" }
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
) -> Result<Option<&'static str>> {
    let order = (visit.client.id(), visit.order);
    let Some(message) = Challenge::redeem(conn, order, form.get("nonce")).await? else {
        return Ok(Some(EXPIRED));
    };
    let signature = form.get("signature");
    if !signature::is_genuine(&wallet(visit)?, &message, signature) {
        return Ok(Some(WRONG));
    }
    let proof = Proof::Signature { message: &message, signature: signature.trim() };
    wallet_proof::record(conn, core, order, proof).await?;
    Ok(None)
}

/// The order's wallet.
fn wallet(visit: &Visit) -> Result<WalletAddress> {
    let code: Option<CurrencyCode> = visit.asset.parse().ok();
    let currency = code.and_then(|code| visit.client.catalogue.currencies.get(&code));
    let chain = currency.and_then(|currency| currency.crypto.as_ref()).map(|crypto| crypto.chain);
    let wallet = chain.and_then(|chain| WalletAddress::parse(chain, &visit.wallet_address).ok());
    wallet.ok_or_else(|| Error::broken("read an order's wallet"))
}
