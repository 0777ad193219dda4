//! The load behind the profile of the release build (`deploy/profile`): every kind of request that
//! partners, users and operators send, over HTTP/1.1 and HTTP/2, those that are refused included. The
//! benchmark's paths alone would have the compiler treat everything else as cold.

mod reads;
mod refusals;
mod trades;
mod users;

use std::time::Duration;

use futures::future::join_all;
use http::Method;
use rampart_core::platform::clock::Clock;
use rampart_tests::caller::{Caller, Protocol, Request};
use serde_json::Value;

use crate::environment::{Database, Environment, SMALL};
use crate::side::{Cores, Side};

/// Time of the load.
const TIME: Duration = Duration::from_secs(40);
/// Customers at a time, half of them over each protocol and half of them with policies.
const CUSTOMERS: u32 = 8;
/// Rounds of a customer of which one has a new user: passwords are hashed then.
const USER_EVERY: u32 = 4;
/// Logins of a customer's users: those of a partner together may log in 60 times a minute.
const LOGINS: u32 = 14;

/// Has an edge answer the load. Panics when an answer is not the expected one.
pub(crate) fn run(clock: &Clock) {
    let environment = Environment::prepare();
    let database = Database::open(&environment, SMALL);
    let side = Side::start(&environment, &database, Cores::Any);
    let edge = &side;
    let end = clock.monotonic_ns() + u64::try_from(TIME.as_nanos()).unwrap();
    let shopping = async {
        let customers = (0..CUSTOMERS).map(|number| async move {
            let customer = Customer::new(edge, number).await;
            let mut round = 0;
            while clock.monotonic_ns() < end {
                customer.round(round).await;
                round += 1;
            }
            round
        });
        join_all(customers).await.into_iter().sum::<u32>()
    };
    let rounds = environment.runtime.block_on(shopping);
    println!("{rounds} rounds of every kind of request in {} s", TIME.as_secs());
}

/// A partner's program at work.
struct Customer<'a> {
    side: &'a Side<'a>,
    number: u32,
    /// The partner by its API key.
    partner: Caller,
    /// The partner by a token.
    authenticated: Caller,
}

impl<'a> Customer<'a> {
    async fn new(side: &'a Side<'a>, number: u32) -> Self {
        let made = if number % 4 < 2 { &side.database.plain } else { &side.database.ruled };
        let protocol = if number.is_multiple_of(2) { Protocol::Http1 } else { Protocol::Http2 };
        let partner = Caller::new(side.address(), protocol, made.clone());
        let authenticated = partner.authenticated().await;
        Self { side, number, partner, authenticated }
    }

    /// A visit of every part of the API.
    async fn round(&self, round: u32) {
        self.read().await;
        self.trade_as_guest(round).await;
        self.refuse().await;
        if round.is_multiple_of(USER_EVERY) {
            let user = self.register(round).await;
            self.change(&user).await;
            self.trade_as_user(&user, round).await;
        }
    }

    /// POST of JSON that is granted; the answer.
    async fn post(&self, path: &str, body: &Value) -> Value {
        sent(self.partner.request(Method::POST, path).json(body)).await
    }
}

/// The JSON of a request that must be granted.
async fn sent(request: Request) -> Value {
    request.send().await.assert_status(200).json()
}
