//! API keys that were not issued, made of ones that were.

use http::Method;
use rampart_tests::campaign::{Report, Scale};

use crate::target::Target;
use crate::verdict::{Verdict, judged};

/// A route that any proven client may read.
const READ: &str = "/api/v1/prices";

pub(crate) async fn forged(scale: Scale) -> Report {
    let target = Target::start().await;
    let genuine = target.edge.partner("victim").await.secret("apiKey").to_owned();
    let own = target.partner.secret("apiKey").to_owned();
    let keys = keys(&genuine, &own);
    judged(scale, &target.neighbour, async |verdict: &mut Verdict| {
        for key in &keys {
            let request = target.partner.anonymous(Method::GET, READ).header("x-api-key", key);
            let answer = request.try_send().await;
            // What no client can send is refused before the edge.
            let status = answer.map_or(400, |answer| answer.status());
            verdict.note(!(400..500).contains(&status), || format!("{status} with {key:.80}"));
        }
    })
    .await
}

fn keys(genuine: &str, own: &str) -> Vec<String> {
    let mut keys = Vec::new();
    for (place, character) in genuine.char_indices() {
        for other in ['a', '0', 'Z', '_'] {
            if other != character {
                let (head, rest) = (&genuine[..place], &genuine[place + character.len_utf8()..]);
                keys.push(format!("{head}{other}{rest}"));
            }
        }
        keys.push(genuine[..place].to_owned());
    }
    let parts: Vec<&str> = genuine.split('_').collect();
    for (place, own) in own.split('_').enumerate().skip(2) {
        // A part of the one in the place of that of the other.
        let mut mixed = parts.clone();
        if let Some(part) = mixed.get_mut(place) {
            *part = own;
            keys.push(mixed.join("_"));
        }
    }
    for (before, after) in [("rk_test_", "rk_live_"), ("rk_", "sk_"), ("rk_test_", "")] {
        keys.push(genuine.replace(before, after));
    }
    keys.extend([
        String::new(),
        "null".into(),
        "undefined".into(),
        "*".into(),
        "' or '1'='1".into(),
        genuine.to_uppercase(),
        genuine.chars().rev().collect(),
        format!("{genuine}{genuine}"),
        format!("{genuine},{genuine}"),
        format!("{genuine} {own}"),
        format!("\"{genuine}\""),
        format!("Bearer {genuine}"),
        format!("{genuine}%00"),
        format!("{genuine}a"),
        "x".repeat(8_000),
    ]);
    keys.retain(|key| key != genuine && key != own);
    keys
}
