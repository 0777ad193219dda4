//! Quotes that were changed, exchanged or kept for too long. Each is confirmed, and none becomes
//! an order.

use rampart_tests::buyer::{confirm, confirm_offer, offer, quote};
use rampart_tests::caller::Caller;
use rampart_tests::campaign::{Report, Scale};
use rampart_tests::cluster;

use crate::target::Target;
use crate::verdict::{Verdict, judged};

/// Of so many positions one is tried in the short form.
const SHORT_STEP: usize = 8;
/// Base64url, by which a quote is written.
const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

pub(crate) async fn forged(scale: Scale) -> Report {
    let target = Target::start().await;
    let own = target.partner.authenticated().await;
    let victim = target.edge.partner("victim").await.authenticated().await;
    let genuine = text(&own).await;
    let mut quotes = changed(&genuine, if scale.is_exact() { 1 } else { SHORT_STEP });
    quotes.extend(exchanged(&genuine, &text(&own).await));
    let foreign = text(&victim).await;
    let offered = offer(&own, "https://shop.example/hook").await;
    let mut report = judged(scale, &target.neighbour, async |verdict: &mut Verdict| {
        for quote in quotes.iter().chain([&foreign]) {
            let answer = confirm(&own, quote).send().await;
            let refused = (400..500).contains(&answer.status());
            verdict.note(!refused, || format!("{} for {quote:.60}", answer.status()));
        }
        let answer = confirm_offer(&own, &foreign, &offered).send().await;
        verdict.note(answer.status() < 400, || "another partner's quote under an offer".to_owned());
    })
    .await;
    let db = cluster::pool(target.edge.setup().database()).await;
    let orders: i64 =
        sqlx::query_scalar("select count(*) from buy_order").fetch_one(&db).await.unwrap();
    report.require(orders == 0, || format!("{orders} orders were made"));
    report
}

async fn text(partner: &Caller) -> String {
    quote(partner).await["quote"].as_str().unwrap().to_owned()
}

/// Each position of the quote in three other ways.
fn changed(genuine: &str, step: usize) -> Vec<String> {
    let mut all = Vec::new();
    for place in (0..genuine.len()).step_by(step) {
        for mask in [1, 8, 32] {
            let mut bytes = genuine.as_bytes().to_vec();
            let digit = ALPHABET.iter().position(|digit| *digit == bytes[place]);
            bytes[place] = digit.map_or(b'A', |digit| ALPHABET[digit ^ mask]);
            all.push(String::from_utf8(bytes).unwrap());
        }
        all.push(genuine[..place].to_owned());
    }
    all
}

/// Parts of two genuine quotes, mixed, left out and doubled.
fn exchanged(one: &str, other: &str) -> Vec<String> {
    let (one_parts, other_parts): (Vec<_>, Vec<_>) =
        (one.split('.').collect(), other.split('.').collect());
    let mut all = Vec::new();
    for place in 0..one_parts.len() {
        let mut mixed = one_parts.clone();
        if mixed[place] != other_parts[place] {
            mixed[place] = other_parts[place];
            all.push(mixed.join("."));
        }
        let mut without = one_parts.clone();
        without.remove(place);
        all.push(without.join("."));
        let mut empty = one_parts.clone();
        if !empty[place].is_empty() {
            empty[place] = "";
            all.push(empty.join("."));
        }
    }
    all.extend([
        format!("{one}."),
        format!(".{one}"),
        format!("{one}{other}"),
        format!("{one}="),
        format!("{one} "),
        format!("{one}\n"),
        one.to_uppercase(),
        "a.b.c.d.e".to_owned(),
        "x".repeat(10_000),
    ]);
    all
}
