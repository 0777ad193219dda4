//! Refresh tokens: a login lives in one hand. Two successors of one token that are both used end it,
//! and so does a token that comes again later than its answer can have been lost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use chrono::{DateTime, TimeDelta, Utc};
use http::Method;
use proptest::prelude::*;
use rampart_tests::partner::Partner;
use serde_json::json;

use crate::history::{History, Model};
use crate::script::{Edges, Round, rounds, run, simulate};

/// Time for which a used token is accepted again.
const GRACE: TimeDelta = TimeDelta::seconds(30);
/// Logins of a script.
const LOGINS: usize = 2;
/// Rounds of a script.
const ROUNDS_MAX: usize = 8;

/// A token: the login that it is of, and the number of renewals before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Token {
    login: usize,
    generation: u32,
    /// Its place among all that somebody holds.
    place: usize,
}

/// A use of a token, some time between two moments.
#[derive(Clone, Copy, Debug)]
struct Use {
    token: Token,
    sent: DateTime<Utc>,
}

#[derive(Clone, Copy, Debug)]
enum Answer {
    Renewed { heard: DateTime<Utc> },
    Ended { heard: DateTime<Utc> },
}

/// The uses of every token, and the logins that have ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Logins {
    /// Token, and the first and last moment at which it may have been used for the first time.
    used: BTreeMap<Token, (DateTime<Utc>, DateTime<Utc>)>,
    ended: BTreeSet<usize>,
}

impl Logins {
    fn end(&self, login: usize) -> Self {
        let mut after = self.clone();
        after.ended.insert(login);
        after
    }

    fn renew(&self, call: &Use, until: DateTime<Utc>) -> Self {
        let mut after = self.clone();
        after.used.entry(call.token).or_insert((call.sent, until));
        after
    }

    /// True if another token of as many renewals, or more, was used before.
    fn is_second_successor(&self, token: Token) -> bool {
        let other = |used: &Token| used.login == token.login && used.generation >= token.generation;
        self.used.keys().any(other)
    }
}

impl Model for Logins {
    type Call = Use;
    type Answer = Answer;

    fn after(&self, call: &Use, answer: Option<&Answer>, _: &[&Use]) -> Vec<Self> {
        let Token { login, .. } = call.token;
        let (heard, renewed) = match answer {
            // It may be carried out long after the one who asked has gone.
            None => (call.sent + GRACE, None),
            Some(Answer::Renewed { heard }) => (*heard, Some(true)),
            Some(Answer::Ended { heard }) => (*heard, Some(false)),
        };
        let mut after = Vec::new();
        let mut may = |state: Self, is_renewed: bool| {
            if renewed.is_none_or(|renewed| renewed == is_renewed) {
                after.push(state);
            }
        };
        if self.ended.contains(&login) {
            may(self.clone(), false);
            return after;
        }
        match self.used.get(&call.token) {
            None if self.is_second_successor(call.token) => may(self.end(login), false),
            None => may(self.renew(call, heard), true),
            Some((first, last)) => {
                if call.sent - *last <= GRACE {
                    may(self.clone(), true);
                }
                if heard - *first >= GRACE {
                    may(self.end(login), false);
                }
            }
        }
        after
    }
}

/// A step of a script: tokens that are brought, each with an edge, and the time that then passes.
type Step = (Round<u16>, i64);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let wait = prop_oneof![4 => Just(0_i64), 2 => Just(4), 1 => Just(45)];
    let waits = prop::collection::vec(wait, ROUNDS_MAX);
    (rounds(any::<u16>(), ROUNDS_MAX), waits)
        .prop_map(|(rounds, waits)| rounds.into_iter().zip(waits).collect())
}

/// The tokens that the partner holds, with their texts.
type Held = Arc<Mutex<Vec<(Token, String)>>>;

async fn refresh(partner: Partner, edges: Arc<Edges>, held: Held, call: Use) -> Option<Answer> {
    let text = held.lock().unwrap()[call.token.place].1.clone();
    let body = json!({"refreshToken": text});
    let answer = partner.anonymous(Method::POST, "/api/v1/refresh").json(&body).send().await;
    let heard = edges.contexts[0].clock().now();
    match answer.status() {
        200 => {
            let text = answer.json()["refreshToken"].as_str().unwrap().to_owned();
            let Token { login, generation, .. } = call.token;
            let mut held = held.lock().unwrap();
            let token = Token { login, generation: generation + 1, place: held.len() };
            held.push((token, text));
            Some(Answer::Renewed { heard })
        }
        400 => {
            answer.assert_codes(&["ER036"]);
            Some(Answer::Ended { heard })
        }
        503 => None,
        other => panic!("{other} {}", answer.text()),
    }
}

async fn log_in(partner: &Partner, login: usize) -> (Token, String) {
    let body = json!({"username": partner.username, "password": partner.password});
    let answer = partner.anonymous(Method::POST, "/api/v1/authenticate").json(&body).send().await;
    let text = answer.assert_status(200).json()["refreshToken"].as_str().unwrap().to_owned();
    (Token { login, generation: 0, place: login }, text)
}

#[test]
fn a_login_is_renewed_in_one_hand() {
    simulate(steps(), |edges, script| async move {
        let partners = edges.partner().await;
        let held = Held::default();
        for login in 0..LOGINS {
            let token = log_in(&partners[0], login).await;
            held.lock().unwrap().push(token);
        }
        let mut history = History::<Logins>::new();
        for (round, wait) in script {
            let sent = edges.contexts[0].clock().now();
            let known = held.lock().unwrap().clone();
            // The youngest are the most interesting.
            let choose = |number: u16| {
                let back = usize::from(number) % known.len().min(6);
                Use { token: known[known.len() - 1 - back].0, sent }
            };
            let calls = round.calls.iter().map(|(edge, number)| (*edge, choose(*number)));
            let round = Round { calls: calls.collect(), fault: round.fault };
            let send = |edge: usize, call: Use| {
                refresh(partners[edge].clone(), Arc::clone(&edges), Arc::clone(&held), call)
            };
            let heard = run::<Logins, _>(&edges, &partners, &round, send).await;
            history.round(&heard)?;
            edges.contexts[0].clock().advance(TimeDelta::seconds(wait));
        }
        Ok(())
    });
}
