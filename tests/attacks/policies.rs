//! Policies of one partner that loop, trap, grow and lie, and components that are none. They cost
//! their partner a built-in fee or an error, and the neighbour nothing.

use bytes::Bytes;
use http::Method;
use rampart_core::platform::clock::Clock;
use rampart_tests::answer::Answer;
use rampart_tests::caller::Caller;
use rampart_tests::campaign::{Report, Scale};
use rampart_tests::guests::component;
use serde_json::json;

use crate::target::Target;
use crate::verdict::{Verdict, judged};

const FEE: &str = "/admin/v1/partners/mallory/policies/fee";
/// Ways to misbehave in the country of the quotes, so that admission does not see it.
const MODES: [&str; 9] = [
    "loop",
    "panic",
    "allocate",
    "recurse",
    "read-outside",
    "large-answer",
    "many-lines",
    "exponent",
    "code",
];
/// Quotes under each policy.
const QUOTES: usize = 5;
/// Places at which a component is damaged, in the short and the full form.
const SHORT_DAMAGES: usize = 8;
const DAMAGES: usize = 100;

pub(crate) async fn hostile(scale: Scale) -> Report {
    let target = Target::start().await;
    let built_in = fee(&quote(&target.partner).await);
    let damages = if scale.is_exact() { DAMAGES } else { SHORT_DAMAGES };
    judged(scale, &target.neighbour, async |verdict: &mut Verdict| {
        for mode in MODES {
            let path = format!("{FEE}?config=%7B%22mode%22:%22{mode}@FR%22%7D");
            let pushed = target.edge.admin_bytes(Method::PUT, &path, component("hostile")).await;
            pushed.assert_status(200);
            for _ in 0..QUOTES {
                let answer = quote(&target.partner).await;
                let wrong = answer.status() != 200 || fee(&answer) != built_in;
                verdict.note(wrong, || format!("{} of a fee that would {mode}", answer.text()));
            }
        }
        for (name, bytes) in damaged(damages) {
            let answer = target.edge.admin_bytes(Method::PUT, FEE, bytes).await;
            verdict.note(answer.status() >= 500, || format!("{} for {name}", answer.status()));
        }
        let answer = quote(&target.partner).await;
        verdict.note(answer.status() != 200, || "no quote afterwards".to_owned());
    })
    .await
}

/// A quote in the country where the policy misbehaves.
async fn quote(partner: &Caller) -> Answer {
    let body = json!({
        "currencyPair": "BTC-EUR", "paymentMethod": "creditCard", "fiatAmount": 100,
        "countryCode": "FR",
    });
    partner.post("/api/v1/buy/quote", body).await
}

fn fee(answer: &Answer) -> String {
    answer.json()["partnerFee"].to_string()
}

/// Bytes that are no component any more, or one that nobody wrote.
fn damaged(count: usize) -> Vec<(String, Bytes)> {
    let genuine = component("tiered-fee");
    let clock = Clock::system();
    let random = |bound: usize| {
        usize::try_from(clock.random_u64().unwrap() % u64::try_from(bound).unwrap()).unwrap()
    };
    let mut all = vec![
        ("nothing".to_owned(), Bytes::new()),
        ("text".to_owned(), Bytes::from_static(b"not a component")),
        ("a header alone".to_owned(), genuine.slice(..8)),
        ("zeros".to_owned(), vec![0; 100_000].into()),
    ];
    for _ in 0..count {
        let place = random(genuine.len());
        all.push((format!("the first {place} bytes"), genuine.slice(..place)));
        let mut bytes = genuine.to_vec();
        bytes[place] ^= 1 << random(8);
        all.push((format!("a component with another bit at {place}"), bytes.into()));
    }
    all
}
