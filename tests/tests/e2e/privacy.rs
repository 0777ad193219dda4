//! Personal data of users is nowhere in plaintext: not in the database, not in a log line of any
//! level, whatever the outcome of the request that carried it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use rampart_tests::caller::{Caller, Request};
use rampart_tests::edge::{Edge, Setup, UNLIMITED};
use rampart_tests::user::image;
use rampart_tests::{cluster, dump};
use serde_json::{Value, json};

/// Users, each with ten values of its own.
const USERS: usize = 20;
/// Values that are looked for.
const PLANTED: usize = 200;

/// The personal data of one person.
struct Person {
    number: usize,
    first: String,
    last: String,
    married: String,
    born: String,
    street: String,
    city: String,
    phone: String,
    email: String,
    iban: String,
    other_iban: String,
}

impl Person {
    fn new(number: usize) -> Self {
        let digits = format!("{number:02}");
        let letters: String = digits.bytes().map(|digit| char::from(digit - b'0' + b'k')).collect();
        Self {
            number,
            first: format!("Zelda{letters}"),
            last: format!("Quimby{letters}"),
            married: format!("Vandersloot{letters}"),
            born: format!("19{}-0{}-1{}", 60 + number, 1 + number % 9, number % 9),
            street: format!("Plantsoenkade{letters}"),
            city: format!("Nergenshuizen{letters}"),
            phone: format!("+316870{:05}", 43_210 + number * 97),
            email: format!("zelda.{letters}@mailbox.example.org"),
            iban: iban(7_310_000 + number * 7_919),
            other_iban: iban(900_310_000 + number * 7_919),
        }
    }

    fn planted(&self) -> [&str; 10] {
        [
            &self.first,
            &self.last,
            &self.married,
            &self.born,
            &self.street,
            &self.city,
            &self.phone[1..],
            &self.email,
            &self.iban[4..],
            &self.other_iban[4..],
        ]
    }

    fn identifier(&self) -> String {
        format!("{:0>36}", format!("person{}", self.number))
    }

    fn registration(&self) -> Value {
        json!({
            "email": self.email, "country": "NL", "identifier": self.identifier(),
            "password": format!("password-{}", self.number), "firstName": self.first,
            "lastName": self.last, "dateOfBirth": self.born, "phoneNumber": self.phone,
            "address": self.street, "addressNo": "12", "postalCode": "1015 CJ", "city": self.city,
            "websiteLanguage": "nl", "websiteCountry": "NL",
        })
    }
}

/// A Dutch account number with its check digits (ISO 13616).
fn iban(account: usize) -> String {
    let account = format!("{account:010}");
    // A is 10, B 11, N 23; then the country, NL, and 00.
    let digits = format!("10112310{account}232100");
    let rest = digits.bytes().fold(0, |rest, digit| (rest * 10 + u32::from(digit - b'0')) % 97);
    format!("NL{:02}ABNA{account}", 98 - rest)
}

struct Ground<'a> {
    edge: &'a Edge,
    partner: Caller,
}

impl Ground<'_> {
    fn as_user(&self, method: Method, path: &str, person: &Person) -> Request {
        self.partner.request(method, path).header("user-identifier", &person.identifier())
    }

    /// Requests with personal values that succeed; gives the user's id.
    async fn say(&self, person: &Person) -> String {
        let request = self.partner.request(Method::POST, "/api/v2/user");
        let request = request.header("idempotency-key", &format!("key-{}", person.number));
        request.json(&person.registration()).send().await.assert_status(200);
        let login = json!({"emailAddress": person.email,
            "password": format!("password-{}", person.number)});
        let session =
            self.partner.post("/api/v1/user/login", login).await.assert_status(200).json();
        let exists = format!("/api/v1/user/exists?emailAddress={}", person.email);
        self.partner.get(&exists).await.assert_status(200);
        let reset = json!({"emailAddress": person.email});
        self.partner.post("/api/v1/user/reset-password", reset).await.assert_status(200);
        let change = json!({"lastName": person.married, "identityDocument": [
            {"documentType": "passport", "documentSide": "front",
                "data": STANDARD.encode(image(300))}]});
        let request = self.as_user(Method::PATCH, "/api/v2/user", person);
        request.json(&change).send().await.assert_status(200);
        let proof = json!({"name": person.first, "iban": person.iban,
            "proof": STANDARD.encode(image(if person.number == 0 { 500_000 } else { 500 }))});
        let request = self.as_user(Method::POST, "/api/v1/user/verify/iban/photo", person);
        request.json(&proof).send().await.assert_status(200);
        let card = json!({"sessionIdentifier": format!("session-{}", person.number),
            "cardHolderName": person.last, "currencyCode": "EUR"});
        let path = "/api/v2/user/accounts/cards/processor";
        self.as_user(Method::POST, path, person).json(&card).send().await.assert_status(200);
        self.as_user(Method::GET, "/api/v1/user/info", person).send().await.assert_status(200);
        self.as_user(Method::GET, "/api/v2/user/limit", person).send().await.assert_status(200);
        let onboarding = json!({"returnUrl": "app:back", "identifier": person.identifier(),
            "kycShareToken": person.married});
        self.partner.post("/api/v2/sell/onboarding", onboarding).await.assert_status(200);
        session["uuid"].as_str().unwrap().to_owned()
    }

    /// The same through operators' calls, with values in the path too.
    async fn operate(&self, person: &Person, user: &str) {
        let user = format!("/admin/v1/users/{user}");
        let account = json!({"type": "bankTransfer", "identifier": person.other_iban,
            "name": person.married});
        let path = format!("{user}/accounts");
        self.edge.admin(Method::POST, &path, account).await.assert_status(201);
        let path = format!("{user}/accounts/{}", person.other_iban);
        let change = json!({"verified": true});
        self.edge.admin(Method::PATCH, &path, change).await.assert_status(200);
        let plan = json!({"cryptoCurrency": "BTC",
            "walletAddress": crate::buyer::WALLET});
        let path = format!("{user}/dca-codes");
        self.edge.admin(Method::POST, &path, plan).await.assert_status(201);
        let level = json!({"level": "gold", "verification": {"identity": "verified"}});
        self.edge.admin(Method::PATCH, &user, level).await.assert_status(200);
        self.edge.admin(Method::GET, &user, json!({})).await.assert_status(200);
    }

    /// Requests with personal values that are refused, or are none.
    async fn fail(&self, person: &Person, user: &str) {
        let again = self.partner.post("/api/v2/user", person.registration()).await;
        again.assert_codes(&["ER002", "ER706"]);
        let wrong = json!({"email": format!("{} x", person.email), "country": person.city,
            "identifier": person.street, "firstName": format!("<{}>", person.first),
            "dateOfBirth": format!("{}x", person.born), "phoneNumber": format!("{}x", person.phone)});
        self.partner.post("/api/v2/user", wrong).await.assert_status(400);
        let login = json!({"emailAddress": person.email, "password": person.married});
        self.partner.post("/api/v1/user/login", login).await.assert_status(400);
        let broken = format!("{{\"email\": \"{}\", {}", person.email, person.first);
        let request = self.partner.request(Method::POST, "/api/v2/user");
        request.body(broken).send().await.assert_codes(&["ER048"]);
        let nowhere = format!("/api/v1/{}?name={}&iban={}", person.first, person.last, person.iban);
        self.partner.get(&nowhere).await.assert_status(404);
        let named = self.partner.request(Method::GET, "/api/v1/user/info");
        named.header("user-identifier", &person.first).send().await.assert_codes(&["ER707"]);
        let proof =
            json!({"name": person.first, "iban": format!("{}9", person.iban), "proof": "x"});
        let request = self.as_user(Method::POST, "/api/v1/user/verify/iban/photo", person);
        request.json(&proof).send().await.assert_status(400);
        let path = format!("/admin/v1/users/{user}/accounts");
        let account = json!({"type": "bankTransfer", "identifier": person.iban,
            "name": person.married, "city": person.city});
        self.edge.admin(Method::POST, &path, account).await.assert_status(422);
        let unknown = format!("/admin/v1/users/{}", person.last);
        self.edge.admin(Method::GET, &unknown, json!({})).await.assert_status(404);
    }
}

#[tokio::test]
async fn nothing_that_identifies_a_person_stands_in_the_database_or_in_a_log_line() {
    let database = cluster::database().await;
    let mut setup = Setup::over(&database);
    for (key, value) in [
        ("log.level", "trace"),
        ("log.format", "json"),
        ("ratelimit.login", UNLIMITED),
        ("ratelimit.uploads", UNLIMITED),
    ] {
        setup.set(key, value);
    }
    let edge = Edge::of(setup).await;
    let people: Vec<_> = (0..USERS).map(Person::new).collect();
    // Few for each partner, whose calls about users' addresses have a rate of their own.
    for some in people.chunks(USERS / 5) {
        let partner = edge.partner(&format!("private-{}", some[0].number)).await;
        let ground = Ground { edge: &edge, partner };
        for person in some {
            let user = ground.say(person).await;
            ground.operate(person, &user).await;
            ground.fail(person, &user).await;
        }
    }
    let dump = dump::of(&cluster::pool(&database).await).await;
    assert!(dump::found(&dump, "bankTransfer").is_some(), "the dump is a dump");
    edge.process.signal(nix::sys::signal::Signal::SIGTERM);
    edge.process.ended().await;
    let log = [edge.process.out(), edge.process.err()].concat().join("\n");
    for seen in ["/api/v1/user/verify/iban/photo", "\"DEBUG\"", "ER002"] {
        assert!(log.contains(seen), "the log is a log: {seen}");
    }
    let planted: Vec<_> = people.iter().flat_map(Person::planted).collect();
    assert_eq!(planted.len(), PLANTED);
    for value in planted {
        for (place, name) in [(&dump, "the database"), (&log, "the log")] {
            if let Some(form) = dump::found(place, value) {
                let line = place.lines().find(|line| line.contains(&form)).unwrap_or_default();
                panic!("{name} has {value} as {form}: {line:.600}");
            }
        }
    }
}
