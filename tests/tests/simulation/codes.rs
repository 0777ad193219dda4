//! Login tokens: each is good once, whoever brings it, wherever, and however often.

use http::Method;
use rampart_tests::partner::Partner;
use serde_json::json;

use crate::history::Model;
use crate::script::{play, rounds, simulate};

/// Tokens of a script.
const TOKENS: usize = 3;

/// The tokens that were used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Used([bool; TOKENS]);

/// The answer to an offer for the user of a login token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Made,
    UsedBefore,
}

impl Model for Used {
    type Call = usize;
    type Answer = Answer;

    fn after(&self, token: &usize, answer: Option<&Answer>, _: &[&usize]) -> Vec<Self> {
        let expected = if self.0[*token] { Answer::UsedBefore } else { Answer::Made };
        if answer.is_some_and(|answer| *answer != expected) {
            return Vec::new();
        }
        let mut after = self.clone();
        after.0[*token] = true;
        vec![after]
    }
}

async fn offer(partner: Partner, token: String) -> Option<Answer> {
    let body = json!({"baseCurrency": "BTC", "quoteCurrency": "EUR",
        "paymentMethod": "creditCard", "loginToken": token});
    let answer = partner.request(Method::POST, "/api/v2/buy/offer").json(&body).send().await;
    match (answer.status(), answer.codes().as_slice()) {
        (200, _) => Some(Answer::Made),
        (400, [code]) if code == "ER333" => Some(Answer::UsedBefore),
        (503, _) => None,
        (status, codes) => panic!("{status} {codes:?}"),
    }
}

#[test]
fn a_login_token_makes_one_offer() {
    simulate(rounds(0..TOKENS, 4), |edges, script| async move {
        let partners = edges.partner().await;
        let user = partners[0].user("ada").await;
        let mut tokens = Vec::new();
        for _ in 0..TOKENS {
            let token = user.get("/api/v1/user/login-token").await.assert_status(200).json();
            tokens.push(token["token"].as_str().unwrap().to_owned());
        }
        let send = |edge: usize, token: usize| offer(partners[edge].clone(), tokens[token].clone());
        let client: uuid::Uuid = partners[0].id.parse().unwrap();
        play::<Used, _>(&edges, &partners, &script, send, async |history| {
            let offers = "select count(*) from offer where client_id = $1";
            let made: i64 = sqlx::query_scalar(offers)
                .bind(client)
                .fetch_one(edges.contexts[0].db())
                .await
                .unwrap();
            let made = usize::try_from(made).unwrap();
            history.see(&made, |used| used.0.iter().filter(|used| **used).count() == made)
        })
        .await
    });
}
