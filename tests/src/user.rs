//! An end user of a partner: registered over the API, and the requests sent for them.

use http::Method;
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::buyer::WALLET;
use crate::caller::Caller;
use crate::partner::{Partner, Request};

/// A registered user. Its requests carry the partner's API key and its identifier.
#[derive(Clone)]
pub struct User {
    /// The partner that registered it.
    pub partner: Partner,
    /// The identifier it is linked to.
    pub identifier: String,
    /// Its e-mail address.
    pub email: String,
    /// Its password.
    pub password: String,
}

/// A registration that succeeds: every member about a person, in names made of `name`.
pub fn registration(name: &str) -> Value {
    json!({
        "email": format!("{name}@mail.example.com"),
        "country": "NL",
        "identifier": format!("{name:z<36}"),
        "password": format!("password-of-{name}"),
        "firstName": "Ada",
        "lastName": "Lovelace",
        "dateOfBirth": "1990-12-10",
        "phoneNumber": "+31612345678",
        "address": "Keizersgracht",
        "addressNo": "7-II",
        "postalCode": "1015 CJ",
        "city": "Amsterdam",
        "websiteLanguage": "nl",
        "websiteCountry": "NL",
        "isBusiness": false,
        "privacyAgreement": true,
        "newsletterSubscription": false,
    })
}

/// An image of this many bytes, by its first ones.
pub fn image(size: usize) -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
    bytes.resize(size, 7);
    bytes
}

impl Partner {
    /// Registers a user with [`registration`]; `name` is letters and digits.
    pub async fn user(&self, name: &str) -> User {
        let body = registration(name);
        self.post("/api/v2/user", body.clone()).await.assert_status(200);
        let text = |member: &str| body[member].as_str().unwrap().to_owned();
        User {
            partner: self.clone(),
            identifier: text("identifier"),
            email: text("email"),
            password: text("password"),
        }
    }
}

impl Caller {
    /// Registers a user with this body, and logs in: the session.
    pub async fn register(&self, user: &Value) -> Value {
        self.post("/api/v2/user", user.clone()).await.assert_status(200);
        let login = json!({"emailAddress": user["email"], "password": user["password"]});
        self.post("/api/v1/user/login", login).await.assert_status(200).json()
    }
}

impl User {
    /// A request for this user, by its identifier.
    pub fn request(&self, method: Method, path: &str) -> Request {
        self.partner.request(method, path).header("user-identifier", &self.identifier)
    }

    /// GET for this user.
    pub async fn get(&self, path: &str) -> Answer {
        self.request(Method::GET, path).send().await
    }

    /// POST of JSON for this user.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.request(Method::POST, path).json(body).send().await
    }

    /// PATCH of JSON for this user.
    pub async fn patch(&self, path: &str, body: &Value) -> Answer {
        self.request(Method::PATCH, path).json(body).send().await
    }

    /// Confirms a purchase of bitcoins with a card, for so many euros.
    pub async fn buy(&self, euros: u32) -> Answer {
        let asked =
            json!({"currencyPair": "BTC-EUR", "paymentMethod": "creditCard", "fiatAmount": euros});
        let quote = self.post("/api/v1/buy/quote", &asked).await.assert_status(200).json();
        let confirm = json!({"quote": quote["quote"], "returnUrl": "https://shop.example/back",
            "walletAddress": WALLET});
        self.post("/api/v1/buy/confirm", &confirm).await
    }

    /// A session: `uuid`, `token`, `refreshToken`.
    pub async fn log_in(&self) -> Value {
        let body = json!({"emailAddress": self.email, "password": self.password});
        let answer = self.partner.post("/api/v1/user/login", body).await;
        answer.assert_status(200);
        answer.json()
    }
}
