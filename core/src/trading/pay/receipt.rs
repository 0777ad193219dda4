//! The receipt of a completed order, for who has its page: `GET /pay/{token}/receipt.pdf`, a document
//! to keep with the signed facts inside, and `GET /pay/{token}/receipt.json`, those facts alone, as
//! the partner reads them.

use http::{Method, StatusCode};

use super::{Link, page};
use crate::Core;
use crate::auth::caller::{Anyone, Client};
use crate::endpoint::Endpoint;
use crate::http::language::Texts;
use crate::http::pdf::Document;
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::platform::error::Result;
use crate::trading::orders::lookup::find_by_number;
use crate::trading::orders::payment_link;
use crate::trading::orders::receipt::{Receipt, SignedReceipt};
use crate::trading::orders::status::OrderStatus;
use crate::trading::price_terms::PriceTerm;
use rampart_types::{Amount, OrderId, Timestamp};

/// The document.
pub struct Pdf;

impl Endpoint for Pdf {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/pay/{token}/receipt.pdf";
    type Caller = Anyone;
    type Request = Link;
    type Response = Reply;

    fn read(input: &Input, _: &Anyone) -> Result<Link> {
        Ok(Link::read(input))
    }

    async fn call(core: &Core, _: Anyone, link: Link) -> Result<Reply> {
        match signed(core, &link).await? {
            Signed::Receipt(client, receipt) => {
                let region = sqlx::query_scalar!(
                    "select u.region from buy_order o join end_user u using (client_id, user_id) \
                     where o.client_id = $1 and o.order_id = $2",
                    client.id().uuid(),
                    receipt.receipt.order_id.number(),
                )
                .fetch_optional(&core.db)
                .await?;
                let texts = link.texts.of_account(region.flatten().as_deref());
                let document = document(texts, &client, &receipt)?;
                Ok(attachment("application/pdf", "pdf", receipt.receipt.order_id, document))
            }
            Signed::Nothing(reply) => Ok(*reply),
        }
    }
}

/// The facts, signed.
pub struct Json;

impl Endpoint for Json {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/pay/{token}/receipt.json";
    type Caller = Anyone;
    type Request = Link;
    type Response = Reply;

    fn read(input: &Input, _: &Anyone) -> Result<Link> {
        Ok(Link::read(input))
    }

    async fn call(core: &Core, _: Anyone, link: Link) -> Result<Reply> {
        match signed(core, &link).await? {
            Signed::Receipt(_, receipt) => {
                let body = Reply::json(StatusCode::OK, &receipt)?.body;
                Ok(attachment("application/json", "json", receipt.receipt.order_id, body.into()))
            }
            Signed::Nothing(reply) => Ok(*reply),
        }
    }
}

/// The content that a signed link shows of its order.
enum Signed {
    Receipt(Box<Client>, Box<SignedReceipt>),
    /// Nothing yet, or there is no such order: where the link's holder is led.
    Nothing(Box<Reply>),
}

/// The receipt of a link's order, of a suspended partner too.
async fn signed(core: &Core, link: &Link) -> Result<Signed> {
    let unknown =
        || Ok(Signed::Nothing(Box::new(page::not_found(link.texts, &core.settings.pages))));
    let Some(key) = payment_link::parse(core, &link.token)? else { return unknown() };
    let Some(client) = Client::of_link(core, key.client, &link.request_id) else {
        return unknown();
    };
    let Some(order) = find_by_number(core, &client, key.order).await? else { return unknown() };
    if order.status != OrderStatus::Completed {
        return Ok(Signed::Nothing(Box::new(page::redirect(&link.token, None))));
    }
    let receipt = SignedReceipt::of(core, &client, order).await?;
    Ok(Signed::Receipt(Box::new(client), Box::new(receipt)))
}

/// A file that browsers keep. The link to it is a permission, so nothing on the way may.
fn attachment(media_type: &'static str, ending: &str, order: OrderId, body: Vec<u8>) -> Reply {
    let mut reply = Reply::with_body(StatusCode::OK, media_type, body.into());
    let name = format!("receipt-{order}.{ending}");
    reply.set("content-disposition", format!("attachment; filename=\"{name}\""));
    reply.set("cache-control", "no-store");
    reply.set("referrer-policy", "no-referrer");
    reply.set("x-content-type-options", "nosniff");
    reply
}

/// The receipt for people, with the signed one inside.
fn document(texts: Texts, client: &Client, signed: &SignedReceipt) -> Result<Vec<u8>> {
    let SignedReceipt { receipt, key_id, jws } = signed;
    let tenant = &client.tenant;
    let keys = format!("{}/.well-known/jwks.json", receipt.iss);
    let signature = texts.with("receipt-signed", &[("key", key_id), ("url", &keys)]);
    let test = tenant.is_test().then(|| texts.get("test-note"));
    let notes: Vec<_> = test.into_iter().chain([signature]).collect();
    let document = Document {
        language: texts.language().code(),
        title: &texts.get("receipt-title"),
        subtitle: &tenant.name,
        terms: &terms(texts, client, receipt),
        notes: &notes,
        file: ("receipt.jws", jws.as_bytes()),
    };
    document.write()
}

fn terms(texts: Texts, client: &Client, receipt: &Receipt) -> Vec<(String, String)> {
    let catalogue = &client.catalogue;
    let fiat = receipt.fiat_amount.currency.to_string();
    let crypto = receipt.crypto_amount.currency.to_string();
    let amount =
        |amount: &Amount, code| texts.amount(&catalogue.format_amount(amount.amount, code));
    let at = |time: &Timestamp| texts.time(time.0);
    let fees = receipt.fees.breakdown();
    let price_terms = PriceTerm::all(catalogue, &fiat, receipt.price.amount, &fees);
    let price_terms = price_terms.iter().map(|term| term.text(texts, &client.tenant.name));
    let tag = receipt.destination_tag.as_ref().map(ToString::to_string);
    let facts = [
        ("term-order", Some(receipt.order_id.to_string())),
        ("receipt-ordered", Some(at(&receipt.ordered_at))),
        ("receipt-paid", receipt.paid_at.as_ref().map(at)),
        ("receipt-completed", Some(at(&receipt.completed_at))),
        ("term-pays", Some(amount(&receipt.fiat_amount, &fiat))),
        ("term-gets", Some(amount(&receipt.crypto_amount, &crypto))),
    ];
    let ways = [
        ("term-method", Some(catalogue.payment_method_name(texts, &receipt.payment_method))),
        ("term-network", Some(catalogue.network_name(&crypto))),
        ("term-wallet", Some(receipt.wallet_address.clone())),
        ("checkout-tag", tag),
        ("term-transaction", Some(receipt.transaction_id.clone())),
    ];
    let named = |(term, value): (&'static str, Option<String>)| Some((texts.get(term), value?));
    let facts = facts.into_iter().filter_map(named);
    facts.chain(price_terms).chain(ways.into_iter().filter_map(named)).collect()
}
