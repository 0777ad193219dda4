//! Secrets that are guessed: a partner's password, a user's, the operators' token.

use http::Method;
use rampart_core::platform::clock::Clock;
use rampart_tests::caller::Protocol;
use rampart_tests::campaign::{Report, Scale};
use rampart_tests::user::registration;
use serde_json::json;

use crate::target::Target;
use crate::verdict::{Verdict, judged};

/// Passwords that people choose, and what makes them look like others.
const GUESSES: [&str; 12] = [
    "password",
    "12345678",
    "qwertyuiop",
    "",
    " ",
    "correct horse",
    "admin",
    "rampart",
    "' or '1'='1",
    "null",
    "%00",
    "{}",
];

/// Guesses at the operators' token that are judged at once, by default.
const JUDGED_AT_ONCE: u64 = 10;
/// Seconds until one more of them is judged.
const JUDGED_EVERY: u64 = 6;

pub(crate) async fn secrets(scale: Scale) -> Report {
    let target = Target::with(|setup| {
        setup.unset("ratelimit.credentials").unset("ratelimit.login");
    })
    .await;
    let victim = target.edge.partner("victim").await;
    let user = registration("ada");
    victim.post("/api/v2/user", user.clone()).await.assert_status(200);
    let rounds = scale.of(2, 10);
    let (mut tried, mut limited) = (0, 0);
    let (clock, mut of_operators, mut judged_ones) = (Clock::system(), 0, 0);
    let mut report = judged(scale, &target.neighbour, async |verdict: &mut Verdict| {
        for _ in 0..rounds {
            for guess in GUESSES {
                let body = json!({"username": victim.secret("username"), "password": guess});
                let request = target.partner.anonymous(Method::POST, "/api/v1/authenticate");
                let client = request.json(&body).send().await.status();
                let body = json!({"emailAddress": user["email"], "password": guess});
                let request = victim.request(Method::POST, "/api/v1/user/login");
                let person = request.json(&body).send().await.status();
                for (whose, status) in [("a partner", client), ("a user", person)] {
                    tried += 1;
                    limited += usize::from(status == 429);
                    verdict.note(!(400..500).contains(&status), || {
                        format!("{status} for {guess:?} of {whose}")
                    });
                }
            }
            for guess in GUESSES {
                let status = operator(&target, guess).await;
                of_operators += 1;
                judged_ones += u64::from(status == 401);
                verdict.note(![401, 429].contains(&status), || {
                    format!("{status} for {guess:?} of the operators")
                });
            }
        }
    })
    .await;
    report.require(2 * limited > tried, || format!("{limited} of {tried} guesses were limited"));
    let seconds = clock.monotonic_ns() / 1_000_000_000;
    report.require(judged_ones <= JUDGED_AT_ONCE + seconds / JUDGED_EVERY + 1, || {
        format!("{judged_ones} of {of_operators} guesses of the operators were judged")
    });
    report
}

/// The operators' answer to a token.
async fn operator(target: &Target, token: &str) -> u16 {
    let url = format!("http://{}/admin/v1/partners", target.edge.admin);
    let request =
        Protocol::Http1.client().get(url).header("authorization", format!("Bearer {token}"));
    request.send().await.unwrap().status().as_u16()
}
