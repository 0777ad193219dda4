//! Another partner's objects and users: every route, with every identifier of the victim's in every
//! place where one goes. What is another's and what does not exist look alike, in time too, and so do
//! names under which somebody logs in and names of nobody.

use http::Method;
use rampart_api::ENDPOINTS;
use rampart_core::endpoint::{Body, Route};
use rampart_core::platform::clock::Clock;
use rampart_tests::answer::Answer;
use rampart_tests::buyer::{offer, order, order_of};
use rampart_tests::caller::Caller;
use rampart_tests::campaign::{Report, Scale};
use rampart_tests::deadline::{SOON, until};
use rampart_tests::edge::UNLIMITED;
use rampart_tests::user::registration;
use serde_json::{Value, json};

use crate::target::Target;
use crate::verdict::{Verdict, judged};

/// The time of another's object and of none may differ by this factor, in hundredths, in the full
/// and the short form.
const TIME_RATIO_MAX: u64 = 150;
const SHORT_TIME_RATIO_MAX: u64 = 400;
/// Of the calls that are timed, one in so many is made where a password is hashed.
const HASHES: usize = 5;

/// A header line.
type Line = (&'static str, String);

/// An identifier of the victim's, and one of the same form that is nobody's.
struct Known {
    name: &'static str,
    victims: String,
    nobodys: String,
}

impl Known {
    fn of(name: &'static str, victims: impl Into<String>) -> Self {
        let victims = victims.into();
        // The last character is a digit of a random part in each of them.
        let (head, last) = victims.split_at(victims.len() - 1);
        let nobodys = format!("{head}{}", if last == "7" { "4" } else { "7" });
        Self { name, victims, nobodys }
    }
}

/// The partner whose objects are asked for.
struct Victim {
    partner: Caller,
    objects: Vec<Known>,
    identifier: Known,
    session: String,
    email: String,
    hook: String,
}

pub(crate) async fn matrix(scale: Scale) -> Report {
    let target = Target::start().await;
    let victim = Victim::start(&target).await;
    let rates = json!({"rateLimits": {"login": UNLIMITED, "clientLogin": UNLIMITED}});
    target.edge.admin(Method::PATCH, "/admin/v1/partners/victim", rates).await.assert_status(200);
    let own = registration("mallory");
    target.partner.post("/api/v2/user", own.clone()).await.assert_status(200);
    let own: Line = ("user-identifier", own["identifier"].as_str().unwrap().to_owned());
    let callers = [target.partner.clone(), target.partner.authenticated().await];
    let mut report = judged(scale, &target.neighbour, async |verdict: &mut Verdict| {
        for route in ENDPOINTS {
            for caller in &callers {
                victim.objects_of(route, caller, &[], verdict).await;
                victim.users_of(route, caller, verdict).await;
            }
            victim.objects_of(route, &callers[0], std::slice::from_ref(&own), verdict).await;
        }
    })
    .await;
    victim.is_untouched(&mut report).await;
    let most = if scale.is_exact() { TIME_RATIO_MAX } else { SHORT_TIME_RATIO_MAX };
    for (name, ratio) in victim.time_ratios(&callers[1], scale.of(50, 400)).await {
        report.require((10_000 / most..=most).contains(&ratio), || {
            format!("{name} takes {ratio} % of the time of none")
        });
    }
    report
}

impl Victim {
    async fn start(target: &Target) -> Self {
        let key = target.edge.partner("victim").await;
        let partner = key.authenticated().await;
        let hook = partner.post("/api/v2/webhooks", json!({"url": "https://shop.example/"})).await;
        let hook = hook.assert_status(200).json()["id"].as_str().unwrap().to_owned();
        let user = registration("victim");
        let session = key.register(&user).await;
        let order = order_of(&order(&partner).await).to_string();
        let event = until("there is an event", SOON, async || {
            let events = partner.get("/api/v2/events").await.assert_status(200).json();
            events.as_array()?.iter().find_map(|event| Some(event["id"].as_str()?.to_owned()))
        })
        .await;
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let objects = vec![
            Known::of("an order", order),
            Known::of("a webhook", hook.clone()),
            Known::of("an event", event),
            Known::of("an offer", offer(&partner, "https://shop.example/hook").await),
            Known::of("a user", text(&session["uuid"])),
        ];
        let identifier = Known::of("a user's identifier", text(&user["identifier"]));
        let (session, email) = (text(&session["token"]), text(&user["email"]));
        Self { partner, objects, identifier, session, email, hook }
    }

    /// Each object in the path of this route.
    async fn objects_of(
        &self,
        route: &Route,
        caller: &Caller,
        lines: &[Line],
        verdict: &mut Verdict,
    ) {
        if !route.path.contains('{') {
            return;
        }
        for known in &self.objects {
            let victims = ask(route, caller, &known.victims, lines).await;
            let nobodys = ask(route, caller, &known.nobodys, lines).await;
            let differ = outcome(&victims) != outcome(&nobodys) || self.is_in(&victims);
            verdict.note(differ || victims.status() < 400, || {
                format!(
                    "{:?} of {}: {:?}, not {:?}",
                    route,
                    known.name,
                    outcome(&victims),
                    outcome(&nobodys)
                )
            });
        }
    }

    /// The victim's user in the headers of this route, by identifier and by session.
    async fn users_of(&self, route: &Route, caller: &Caller, verdict: &mut Verdict) {
        let some = &self.objects[0].nobodys;
        for (name, header, victims, nobodys) in [
            (
                "identifier",
                "user-identifier",
                self.identifier.victims.clone(),
                self.identifier.nobodys.clone(),
            ),
            (
                "session",
                "user-authorization",
                format!("Bearer {}", self.session),
                "Bearer a.b.c".to_owned(),
            ),
        ] {
            let victims = ask(route, caller, some, &[(header, victims)]).await;
            let nobodys = ask(route, caller, some, &[(header, nobodys)]).await;
            // A route that takes no user gives everybody the same.
            let granted = victims.status() < 400 && nobodys.status() >= 400;
            verdict.note(granted || self.is_in(&victims) || victims.status() >= 500, || {
                format!("{} for {route:?} with another's {name}", victims.status())
            });
        }
    }

    /// `true` if an answer tells something of the victim's that was not in the request.
    fn is_in(&self, answer: &Answer) -> bool {
        let text = answer.text();
        text.contains(&self.session) || text.contains(&self.email)
    }

    /// Everything of the victim's is as it was.
    async fn is_untouched(&self, report: &mut Report) {
        let hooks = self.partner.get("/api/v2/webhooks").await.assert_status(200).json();
        report.require(hooks.to_string().contains(&self.hook), || "the webhook is gone".to_owned());
        let order =
            self.partner.get(&format!("/api/v2/buy/orders/{}", self.objects[0].victims)).await;
        let status = order.assert_status(200).json()["status"].clone();
        report.require(status == "pending", || format!("the order is {status}"));
    }

    /// Median times of calls that are refused alike for a name that exists and one that does not: the
    /// first in hundredths of the second.
    async fn time_ratios(&self, caller: &Caller, pairs: usize) -> [(&'static str, u64); 3] {
        let orders = [&self.objects[0].victims, &self.objects[0].nobodys];
        let emails = [self.email.as_str(), "nobody@mail.example.com"];
        let names = [self.partner.secret("username"), "nobody"];
        let order = time_ratio(pairs, async |number| {
            caller.get(&format!("/api/v2/buy/orders/{}", orders[number])).await
        });
        let order = order.await;
        let login = time_ratio(pairs / HASHES, async |number| {
            let body = json!({"emailAddress": emails[number], "password": "wrong-password"});
            self.partner.post("/api/v1/user/login", body).await
        });
        let login = login.await;
        let authenticate = time_ratio(pairs / HASHES, async |number| {
            let body = json!({"username": names[number], "password": "wrong-password"});
            let request = caller.anonymous(Method::POST, "/api/v1/authenticate");
            request.json(&body).send().await
        });
        [
            ("another's order", order),
            ("a user's address", login),
            ("a partner's user name", authenticate.await),
        ]
    }
}

/// The median time of the first of two calls in hundredths of that of the second, made in turn.
async fn time_ratio(pairs: usize, call: impl AsyncFn(usize) -> Answer) -> u64 {
    let clock = Clock::system();
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..pairs {
        for (number, times) in times.iter_mut().enumerate() {
            let began = clock.monotonic_ns();
            let answer = call(number).await;
            times.push(clock.monotonic_ns() - began);
            assert!((400..500).contains(&answer.status()) && answer.status() != 429);
        }
    }
    let [one, other] = times.map(|mut times| {
        times.sort_unstable();
        times[times.len() / 2]
    });
    one * 100 / other.max(1)
}

/// Asks a route with this identifier wherever its path has one.
async fn ask(route: &Route, caller: &Caller, id: &str, lines: &[Line]) -> Answer {
    let segments = route.path.split('/').map(|segment| match segment {
        "{event}" => "cancel",
        segment if segment.starts_with('{') => id,
        segment => segment,
    });
    let path = segments.collect::<Vec<_>>().join("/");
    let mut request = caller.request(route.method.clone(), &path);
    for (name, value) in lines {
        request = request.header(name, value);
    }
    if matches!(route.body, Body::Json) || route.method == Method::POST {
        request = request.json(&json!({}));
    }
    request.send().await
}

/// Status and codes.
fn outcome(answer: &Answer) -> (u16, Vec<String>) {
    (answer.status(), answer.codes())
}
