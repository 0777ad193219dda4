//! The document as a contract: what a request must be, and what it is answered.

use std::collections::HashMap;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode};
use jsonschema::Validator;
use rampart_api::PARTNERS_API;
use rampart_core::auth::caller::UserProof;
use rampart_core::endpoint::fault::{self, SCENARIO};
use rampart_core::endpoint::router::Found;
use rampart_core::endpoint::{Route, text_amounts};
use rampart_core::http::fields;
use rampart_core::http::reply::Reply;
use rampart_core::platform::error::{Code, Error};
use rampart_core::trading::orders::status::OrderStatus;
use serde_json::{Value, json};
use url::form_urlencoded;

use crate::startup_error::{Context as _, StartupError};

/// Violations of a body that an answer names.
const VIOLATIONS_MAX: usize = 8;
/// Seconds after which a client may try again, in answers that say so.
const RETRY_AFTER_SECONDS: &str = "1";

/// The partners' document with the validators of its requests.
pub(super) struct Contract {
    /// By method and path as declared.
    operations: HashMap<(&'static str, &'static str), Operation>,
}

/// The form of one operation: its request and its success.
struct Operation {
    body: Option<Validator>,
    body_required: bool,
    query: Vec<Parameter>,
    status: StatusCode,
    answer: Option<Bytes>,
}

/// A parameter of the query.
struct Parameter {
    name: &'static str,
    required: bool,
    values: Validator,
}

impl Contract {
    /// Reads the document that this binary serves.
    ///
    /// # Errors
    /// A schema of the document cannot be read, which the tests exclude.
    pub(super) fn read() -> Result<Self, StartupError> {
        let document = PARTNERS_API.document();
        let mut operations = HashMap::new();
        for route in PARTNERS_API.endpoints {
            let method = route.method.as_str();
            let declared = &document["paths"][route.path][method.to_lowercase()];
            operations.insert((method, route.path), Operation::read(document, declared)?);
        }
        Ok(Self { operations })
    }

    /// The answer to a request.
    pub(super) fn answer(&self, head: &Parts, body: &[u8]) -> Reply {
        let route = match PARTNERS_API.find(&head.method, head.uri.path()) {
            Found::Endpoint(route, _) => route,
            Found::OtherMethods(methods) => return not_allowed(&methods),
            Found::Nothing => return refused(Code::RouteNotFound.into()),
        };
        let Some(operation) = self.operations.get(&(route.method.as_str(), route.path)) else {
            return refused(Code::RouteNotFound.into());
        };
        let mut reply = operation.respond(route, head, body);
        if text_amounts::wanted(&head.headers) {
            text_amounts::apply(&PARTNERS_API, route, &mut reply);
        }
        text_amounts::vary(&PARTNERS_API, route, &mut reply);
        reply
    }
}

impl Operation {
    fn read(document: &'static Value, declared: &'static Value) -> Result<Self, StartupError> {
        let body = &declared["requestBody"];
        let schema = &body["content"]["application/json"]["schema"];
        let query = declared["parameters"].as_array().into_iter().flatten();
        let query = query.filter(|parameter| parameter["in"] == "query");
        let (status, answer) = success(declared);
        Ok(Self {
            body: schema.is_object().then(|| validator(document, schema)).transpose()?,
            body_required: body["required"] == true,
            query: query.map(|one| Parameter::read(document, one)).collect::<Result<_, _>>()?,
            status,
            answer: answer.map(|body| match body {
                // What has no example is the document itself.
                Value::Null => document.to_string().into(),
                example => example.to_string().into(),
            }),
        })
    }

    /// The answer that a scenario asks for, or that the request gets.
    fn respond(&self, route: &Route, head: &Parts, body: &[u8]) -> Reply {
        if let Some(scenario) = head.headers.get(SCENARIO) {
            return play(route, self, scenario.to_str().unwrap_or_default());
        }
        let query = head.uri.query().unwrap_or_default();
        match check_credentials(route, &head.headers).and_then(|()| self.check(query, body)) {
            Ok(()) => self.success(),
            Err(error) => refused(error),
        }
    }

    /// Holds a request to the declaration.
    fn check(&self, query: &str, body: &[u8]) -> Result<(), Error> {
        for parameter in &self.query {
            let mut pairs = form_urlencoded::parse(query.as_bytes());
            let sent = pairs.find(|(name, _)| name == parameter.name).map(|(_, value)| value);
            parameter.check(sent.as_deref())?;
        }
        let Some(validator) = &self.body else { return Ok(()) };
        if body.is_empty() && !self.body_required {
            return Ok(());
        }
        let sent = fields::parse(body)?;
        let violations: Vec<_> = validator
            .iter_errors(&sent)
            .take(VIOLATIONS_MAX)
            .map(|error| {
                let place = error.instance_path().to_string();
                let member = place.trim_start_matches('/');
                let name = if member.is_empty() { "body" } else { member };
                format!("{name}: {}", error.masked())
            })
            .collect();
        match violations.is_empty() {
            true => Ok(()),
            false => Err(Error::with_detail(Code::RequestMalformed, violations.join("; "))),
        }
    }

    /// The success with an order in this state; `None` if the answer is no order.
    fn in_state(&self, status: OrderStatus) -> Option<Reply> {
        let mut example: Value = serde_json::from_slice(self.answer.as_ref()?).ok()?;
        OrderStatus::from_name(example.get("status")?.as_str()?)?;
        example["status"] = status.as_str().into();
        Some(Reply::with_body(self.status, "application/json", example.to_string().into()))
    }

    fn success(&self) -> Reply {
        match &self.answer {
            Some(body) => Reply::with_body(self.status, "application/json", body.clone()),
            None => Reply::empty(self.status),
        }
    }
}

impl Parameter {
    fn read(document: &'static Value, declared: &'static Value) -> Result<Self, StartupError> {
        Ok(Self {
            name: declared["name"].as_str().unwrap_or_default(),
            required: declared["required"] == true,
            values: validator(document, &declared["schema"])?,
        })
    }

    /// Holds a value to the schema: as the text that it is, or as the number or truth it spells.
    fn check(&self, sent: Option<&str>) -> Result<(), Error> {
        let refused = |what: &str| {
            Err(Error::with_detail(Code::RequestMalformed, format!("{}: {what}", self.name)))
        };
        let Some(sent) = sent else {
            return if self.required { refused("is missing") } else { Ok(()) };
        };
        let spelt = fields::parse(sent.as_bytes()).unwrap_or_default();
        let fits = self.values.is_valid(&json!(sent)) || self.values.is_valid(&spelt);
        if fits { Ok(()) } else { refused("is not as the document says") }
    }
}

/// The status of an operation's success and its example, null where it has none; no body is `None`.
fn success(declared: &'static Value) -> (StatusCode, Option<&'static Value>) {
    let answers = declared["responses"].as_object().into_iter().flatten();
    let mut successes = answers.filter(|(status, _)| status.starts_with('2'));
    let Some((status, answer)) = successes.next() else { return (StatusCode::OK, None) };
    let content = answer["content"].get("application/json");
    (status.parse().unwrap_or(StatusCode::OK), content.map(|content| &content["example"]))
}

fn validator(document: &Value, schema: &Value) -> Result<Validator, StartupError> {
    let mut schema = schema.clone();
    // References point into the document's components, which most parameters do without.
    if schema.to_string().contains("\"$ref\"") {
        schema["components"] = json!({ "schemas": document["components"]["schemas"] });
    }
    jsonschema::draft202012::options()
        .should_validate_formats(true)
        .build(&schema)
        .context("the document has a broken schema")
}

/// The error that a scenario asks for, with the status that it names or that the operation declares
/// for it; or the order in the state that it asks for.
fn play(route: &Route, operation: &Operation, scenario: &str) -> Reply {
    if let Some(reply) = OrderStatus::from_name(scenario).and_then(|to| operation.in_state(to)) {
        return reply;
    }
    let Some((code, named)) = fault::parse(scenario) else {
        let detail = "X-Rampart-Scenario: a code such as ER008, or an order's state";
        return refused(Error::with_detail(Code::RequestMalformed, detail));
    };
    let mut reply = refused(code.into());
    let declared = route.doc.also.iter().find(|(_, also)| *also == code);
    let declared = declared.and_then(|(status, _)| StatusCode::from_u16(*status).ok());
    reply.status = declared.filter(|_| !scenario.contains(' ')).unwrap_or(named);
    if matches!(reply.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
        reply.set("retry-after", RETRY_AFTER_SECONDS);
    }
    reply
}

/// Asks for the credentials of the operation; whatever they are, they are good.
fn check_credentials(route: &Route, headers: &HeaderMap) -> Result<(), Error> {
    if !route.client {
        return Ok(());
    }
    let (key, token) = (headers.contains_key("x-api-key"), headers.contains_key("authorization"));
    match (key, token) {
        (false, false) => return Err(Code::ClientCredentialMissing.into()),
        (true, true) => return Err(Code::ClientCredentialAmbiguous.into()),
        _ => {}
    }
    let wanted = match route.user {
        UserProof::None | UserProof::Optional => false,
        UserProof::WithApiKey => key,
        UserProof::Required | UserProof::Token => true,
    };
    let token = headers.contains_key("user-authorization");
    let identifier = headers.contains_key("user-identifier") && route.user != UserProof::Token;
    if wanted && !token && !identifier {
        return Err(Code::UserCredentialMissing.into());
    }
    Ok(())
}

fn refused(error: Error) -> Reply {
    error.reply("mock")
}

fn not_allowed(methods: &[&Method]) -> Reply {
    let status = StatusCode::METHOD_NOT_ALLOWED;
    let mut reply = refused(Error::with_status(Code::RouteNotFound, status, "see Allow"));
    let names: Vec<_> = methods.iter().map(|method| method.as_str()).collect();
    reply.set("allow", names.join(", "));
    reply
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use http::Request;

    use super::*;

    /// Read once: it takes long to compile the schemas where nothing is optimised.
    static CONTRACT: LazyLock<Contract> = LazyLock::new(|| Contract::read().unwrap());

    fn ask(method: &str, target: &str, headers: &[(&'static str, &str)], body: &str) -> Reply {
        let mut request = Request::builder().method(method).uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        CONTRACT.answer(&head, body.as_bytes())
    }

    fn code(reply: &Reply) -> String {
        let body: Value = serde_json::from_slice(&reply.body).unwrap();
        body["errors"].as_object().unwrap().keys().next().unwrap().clone()
    }

    const KEY: (&str, &str) = ("x-api-key", "any");
    const USER: (&str, &str) = ("user-identifier", "any");
    const QUOTE: &str =
        r#"{"currencyPair": "BTC-EUR", "paymentMethod": "creditCard", "fiatAmount": 250}"#;

    #[test]
    fn every_operation_takes_its_own_example() {
        for route in PARTNERS_API.endpoints {
            let method = route.method.as_str();
            let declared = &PARTNERS_API.document()["paths"][route.path][method.to_lowercase()];
            let example = &declared["requestBody"]["content"]["application/json"]["example"];
            let body = if example.is_null() { String::new() } else { example.to_string() };
            let operation = &CONTRACT.operations[&(method, route.path)];
            assert!(
                operation.check(&required_query(declared), body.as_bytes()).is_ok(),
                "{route:?}"
            );
            let reply = operation.success();
            assert!(reply.status.is_success(), "{route:?}");
            let has_body = operation.answer.is_some();
            assert_eq!(has_body, serde_json::from_slice::<Value>(&reply.body).is_ok(), "{route:?}");
        }
    }

    /// A query with what must be there.
    fn required_query(declared: &Value) -> String {
        let parameters = declared["parameters"].as_array().into_iter().flatten();
        let required = parameters.filter(|one| one["in"] == "query" && one["required"] == true);
        let pair = |one: &Value| {
            let name = one["name"].as_str().unwrap();
            let known = &one["schema"]["enum"][0];
            let value = match (known.as_str(), one["schema"]["format"].as_str()) {
                (Some(known), _) => known,
                (_, Some("email")) => "ada@example.com",
                _ => "1",
            };
            format!("{name}={value}")
        };
        required.map(pair).collect::<Vec<_>>().join("&")
    }

    #[test]
    fn a_quote_is_the_example_and_a_wrong_one_is_refused() {
        let reply = ask("POST", "/api/v1/buy/quote", &[KEY, USER], QUOTE);
        assert_eq!(reply.status, StatusCode::OK);
        let quote: Value = serde_json::from_slice(&reply.body).unwrap();
        assert!(quote["quote"].is_string());
        let twice = QUOTE.replace('}', r#", "fiatAmount": 250}"#);
        for body in ["", "{", r#"{"currencyPair": 7, "fiatAmount": true}"#, &*twice] {
            let reply = ask("POST", "/api/v1/buy/quote", &[KEY, USER], body);
            assert_eq!((reply.status, code(&reply).as_str()), (StatusCode::BAD_REQUEST, "ER048"));
        }
    }

    #[test]
    fn amounts_are_strings_for_whoever_prefers_it() {
        let document = ask("GET", "/openapi.json", &[("prefer", "money=string")], "");
        assert_eq!(document.headers["preference-applied"], "money=string");
        let ask = |headers: &[_]| ask("POST", "/api/v1/buy/quote", headers, QUOTE);
        let (plain, spelt) = (ask(&[KEY]), ask(&[KEY, ("prefer", "money=string")]));
        assert!(!plain.headers.contains_key("preference-applied"));
        assert_eq!(spelt.headers["preference-applied"], "money=string");
        let amount = |reply: &Reply| {
            let quote: Value = serde_json::from_slice(&reply.body).unwrap();
            assert_eq!(reply.headers["vary"], "Prefer");
            quote["fiatAmount"].clone()
        };
        let plain = amount(&plain);
        assert!(plain.is_number(), "{plain}");
        assert_eq!(amount(&spelt), json!(plain.to_string()));
    }

    #[test]
    fn credentials_are_asked_for() {
        let prices = |headers: &[_]| code(&ask("GET", "/api/v2/prices", headers, ""));
        assert_eq!(prices(&[]), "ER802");
        assert_eq!(prices(&[KEY, ("authorization", "Bearer any")]), "ER803");
        assert_eq!(code(&ask("GET", "/api/v1/user/info", &[KEY], "")), "ER700");
    }

    #[test]
    fn a_scenario_is_answered_with_its_code_and_status() {
        for known in Code::ALL {
            let scenario = ("x-rampart-scenario", known.as_str());
            let reply = ask("GET", "/api/v2/prices", &[KEY, scenario], "");
            assert_eq!(code(&reply), known.as_str());
            assert_eq!(reply.status.as_u16(), known.status());
        }
        let ask =
            |path, scenario| ask("GET", path, &[KEY, USER, ("x-rampart-scenario", scenario)], "");
        assert_eq!(code(&ask("/api/v2/prices", "ER000")), "ER048");
        assert_eq!(ask("/api/v2/prices", "ER999 503").status, StatusCode::SERVICE_UNAVAILABLE);
        for status in OrderStatus::ALL {
            let reply = ask("/api/v2/buy/orders/7", status.as_str());
            let order: Value = serde_json::from_slice(&reply.body).unwrap();
            assert_eq!((reply.status, &order["status"]), (StatusCode::OK, &json!(status.as_str())));
            assert_eq!(code(&ask("/api/v2/prices", status.as_str())), "ER048");
        }
    }

    #[test]
    fn what_is_not_in_the_document_is_not_answered() {
        assert_eq!(ask("GET", "/api/v9/prices", &[KEY], "").status, StatusCode::NOT_FOUND);
        let other = ask("DELETE", "/api/v2/prices", &[KEY], "");
        assert_eq!(other.status, StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(other.headers["allow"], "GET");
    }
}
