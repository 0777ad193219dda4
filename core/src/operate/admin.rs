//! The operators' API (section 11 of the contract): its table, its door, its errors.
//!
//! It is served on a listener of its own, never on the edge's. Bodies are read strictly: an
//! unknown member is 422, so that a typing error is seen.

mod accounts;
mod api_keys;
mod audit;
mod dca;
mod deliveries;
mod documents;
mod mail;
mod market;
mod orders;
mod partners;
mod policies;
mod secrets;
mod users;

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::Core;
use crate::api::segments;
use crate::auth::client_credentials::bearer;
use crate::http::reply::Reply;
use crate::http::request::Head;
use crate::platform::crypto::{constant_time_eq, digest_of};
use crate::platform::error::Error;

/// Every call, a line each.
const CALLS: &[Call] = &[
    // Partners
    call(Method::POST, "/admin/v1/partners", |core, input| Box::pin(partners::create(core, input))),
    call(Method::GET, "/admin/v1/partners", |core, input| Box::pin(partners::list(core, input))),
    call(Method::GET, "/admin/v1/partners/{slug}", |core, input| {
        Box::pin(partners::read(core, input))
    }),
    call(Method::PATCH, "/admin/v1/partners/{slug}", |core, input| {
        Box::pin(partners::change(core, input))
    }),
    call(Method::POST, "/admin/v1/partners/{slug}/api-keys", |core, input| {
        Box::pin(api_keys::issue(core, input))
    }),
    call(Method::DELETE, "/admin/v1/partners/{slug}/api-keys/{id}", |core, input| {
        Box::pin(api_keys::revoke(core, input))
    }),
    call(Method::POST, "/admin/v1/partners/{slug}/secrets/rotate", |core, input| {
        Box::pin(secrets::rotate(core, input))
    }),
    // Policies
    call(Method::GET, "/admin/v1/partners/{slug}/policies/{kind}", |core, input| {
        Box::pin(policies::history(core, input))
    }),
    call(Method::PUT, "/admin/v1/partners/{slug}/policies/{kind}", |core, input| {
        Box::pin(policies::push(core, input))
    }),
    call(Method::DELETE, "/admin/v1/partners/{slug}/policies/{kind}", |core, input| {
        Box::pin(policies::remove(core, input))
    }),
    call(Method::PUT, "/admin/v1/partners/{slug}/policies/{kind}/config", |core, input| {
        Box::pin(policies::configure(core, input))
    }),
    call(Method::POST, "/admin/v1/partners/{slug}/policies/{kind}/rollback", |core, input| {
        Box::pin(policies::roll_back(core, input))
    }),
    call(Method::POST, "/admin/v1/partners/{slug}/policies/{kind}/dry-run", |core, input| {
        Box::pin(policies::dry_run(core, input))
    }),
    call(Method::PUT, "/admin/v1/partners/{slug}/verification-keys/{name}", |core, input| {
        Box::pin(policies::keys::put_key(core, input))
    }),
    call(Method::DELETE, "/admin/v1/partners/{slug}/verification-keys/{name}", |core, input| {
        Box::pin(policies::keys::delete_key(core, input))
    }),
    call(Method::POST, "/admin/v1/partners/{slug}/policies/{kind}/versions", |core, input| {
        Box::pin(policies::versions::stage(core, input))
    }),
    call(
        Method::POST,
        "/admin/v1/partners/{slug}/policies/{kind}/versions/{version}/activate",
        |core, input| Box::pin(policies::versions::activate(core, input)),
    ),
    call(
        Method::POST,
        "/admin/v1/partners/{slug}/policies/{kind}/versions/{version}/shadow",
        |core, input| Box::pin(policies::versions::shadow(core, input)),
    ),
    call(Method::GET, "/admin/v1/partners/{slug}/policies/{kind}/trial", |core, input| {
        Box::pin(policies::trial::read(core, input))
    }),
    call(Method::DELETE, "/admin/v1/partners/{slug}/policies/{kind}/trial", |core, input| {
        Box::pin(policies::trial::end(core, input))
    }),
    call(Method::GET, "/admin/v1/operator-keys", |core, input| {
        Box::pin(policies::keys::list_operators(core, input))
    }),
    call(Method::PUT, "/admin/v1/operator-keys/{name}", |core, input| {
        Box::pin(policies::keys::register_operator(core, input))
    }),
    call(Method::DELETE, "/admin/v1/operator-keys/{name}", |core, input| {
        Box::pin(policies::keys::remove_operator(core, input))
    }),
    // The market
    call(Method::GET, "/admin/v1/pairs", |core, input| Box::pin(market::list(core, input))),
    call(Method::PATCH, "/admin/v1/pairs/{pair}", |core, input| {
        Box::pin(market::change_pair(core, input))
    }),
    call(Method::PUT, "/admin/v1/prices/{pair}", |core, input| {
        Box::pin(market::set_price(core, input))
    }),
    call(Method::PATCH, "/admin/v1/payment-methods/{code}", |core, input| {
        Box::pin(market::change_method(core, input))
    }),
    // Orders
    call(Method::GET, "/admin/v1/orders", |core, input| Box::pin(orders::search(core, input))),
    call(Method::GET, "/admin/v1/orders/{id}", |core, input| Box::pin(orders::read(core, input))),
    call(Method::POST, "/admin/v1/orders/{id}/events", |core, input| {
        Box::pin(orders::events::happen(core, input))
    }),
    call(Method::POST, "/admin/v1/orders/{id}/replay", |core, input| {
        Box::pin(orders::replay(core, input))
    }),
    call(Method::POST, "/admin/v1/offers/{uuid}/expire", |core, input| {
        Box::pin(orders::expire_offer(core, input))
    }),
    // Users
    call(Method::GET, "/admin/v1/users/{uuid}", |core, input| Box::pin(users::read(core, input))),
    call(Method::PATCH, "/admin/v1/users/{uuid}", |core, input| {
        Box::pin(users::change(core, input))
    }),
    call(Method::GET, "/admin/v1/users/{uuid}/accounts", |core, input| {
        Box::pin(accounts::list(core, input))
    }),
    call(Method::POST, "/admin/v1/users/{uuid}/accounts", |core, input| {
        Box::pin(accounts::open(core, input))
    }),
    call(Method::PATCH, "/admin/v1/users/{uuid}/accounts/{accountIdentifier}", |core, input| {
        Box::pin(accounts::change(core, input))
    }),
    call(Method::GET, "/admin/v1/users/{uuid}/proofs/{id}", |core, input| {
        Box::pin(documents::proof(core, input))
    }),
    call(Method::GET, "/admin/v1/users/{uuid}/documents/{id}", |core, input| {
        Box::pin(documents::document(core, input))
    }),
    call(Method::GET, "/admin/v1/mail", |core, input| Box::pin(mail::list(core, input))),
    // Savings plans
    call(Method::POST, "/admin/v1/users/{uuid}/dca-codes", |core, input| {
        Box::pin(dca::open(core, input))
    }),
    call(Method::POST, "/admin/v1/dca-codes/{code}/deposits", |core, input| {
        Box::pin(dca::deposit(core, input))
    }),
    // Deliveries
    call(Method::GET, "/admin/v1/deliveries", |core, input| {
        Box::pin(deliveries::list(core, input))
    }),
    call(Method::POST, "/admin/v1/deliveries/{id}/redeliver", |core, input| {
        Box::pin(deliveries::redeliver(core, input))
    }),
    // Audit
    call(Method::GET, "/admin/v1/audit", |core, input| Box::pin(audit::list(core, input))),
];

/// Largest body of the admin API in bytes: a policy's component, with room.
pub const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A row of the table.
struct Call {
    method: Method,
    path: &'static str,
    handle: Handle,
}

type Handle = for<'a> fn(&'a Arc<Core>, Input) -> BoxFuture<'a, Answer>;

const fn call(method: Method, path: &'static str, handle: Handle) -> Call {
    Call { method, path, handle }
}

/// What a call answers: a finished reply, or why not.
pub(crate) type Answer = Result<Reply, Refused>;

/// A call's request.
#[derive(Debug)]
pub(crate) struct Input {
    head: Head,
    body: Bytes,
    params: Vec<(&'static str, String)>,
}

impl Input {
    /// The decoded path segment `{name}`.
    pub(crate) fn param(&self, name: &str) -> &str {
        self.params.iter().find(|(n, _)| *n == name).map_or("", |(_, value)| value)
    }

    /// Who calls, for the audit.
    #[expect(clippy::unused_self, reason = "roles will take it from the request's token")]
    pub(crate) fn actor(&self) -> &'static str {
        "admin"
    }

    /// The query's parameters, read strictly.
    ///
    /// # Errors
    /// 422 with what does not fit.
    pub(crate) fn query<T: DeserializeOwned>(&self) -> Result<T, Refused> {
        let pairs =
            url::form_urlencoded::parse(self.head.query.as_deref().unwrap_or("").as_bytes());
        let members = pairs.map(|(name, value)| (name.into_owned(), Value::String(value.into())));
        serde_json::from_value(Value::Object(members.collect()))
            .map_err(|error| Refused::unprocessable(error.to_string()))
    }

    /// The body as JSON, read strictly. An empty body is an empty object.
    ///
    /// # Errors
    /// 400 when it is not JSON, 422 with what does not fit.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, Refused> {
        let body = if self.body.is_empty() { b"{}" } else { &self.body[..] };
        let value = crate::http::fields::parse(body)
            .map_err(|_| Refused::new(StatusCode::BAD_REQUEST, "the body is not valid JSON"))?;
        serde_json::from_value(value).map_err(|error| Refused::unprocessable(error.to_string()))
    }

    /// The body as it came.
    pub(crate) fn bytes(&self) -> &Bytes {
        &self.body
    }
}

/// Why a call was not carried out. Nothing has changed.
#[derive(Debug)]
pub(crate) struct Refused {
    status: StatusCode,
    reason: String,
}

impl Refused {
    /// A refusal with a reason for the operator.
    pub(crate) fn new(status: StatusCode, reason: impl Into<String>) -> Self {
        Self { status, reason: reason.into() }
    }

    /// 422.
    pub(crate) fn unprocessable(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, reason)
    }

    /// 409.
    pub(crate) fn conflict(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, reason)
    }

    /// 404.
    pub(crate) fn not_found(what: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, format!("no such {what}"))
    }

    fn reply(&self) -> Reply {
        let body = json!({ "error": self.reason }).to_string();
        Reply::with_body(self.status, "application/json", body.into())
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        match &error {
            Error::Refused(_) => Self::unprocessable(error.to_string()),
            Error::Failed(failure) => {
                tracing::error!(%error, "an admin call failed");
                let status = if failure.unavailable {
                    StatusCode::SERVICE_UNAVAILABLE
                } else {
                    StatusCode::INTERNAL_SERVER_ERROR
                };
                Self::new(status, "something went wrong on our side")
            }
        }
    }
}

impl From<sqlx::Error> for Refused {
    fn from(error: sqlx::Error) -> Self {
        Error::from(error).into()
    }
}

/// How many rows a query asks for: `most` when it does not say.
///
/// # Errors
/// 422 for anything but a number from 1 to `most`.
pub(crate) fn limit(asked: Option<&str>, most: i64) -> Result<i64, Refused> {
    let Some(text) = asked else { return Ok(most) };
    let in_bounds = text.parse().ok().filter(|limit| (1..=most).contains(limit));
    in_bounds.ok_or_else(|| Refused::unprocessable(format!("limit: 1 to {most}")))
}

/// 200 with a JSON body.
pub(crate) fn ok(value: &impl Serialize) -> Answer {
    Ok(Reply::json(StatusCode::OK, value)?)
}

/// 201 with a JSON body.
pub(crate) fn created(value: &impl Serialize) -> Answer {
    Ok(Reply::json(StatusCode::CREATED, value)?)
}

/// 204.
pub(crate) fn done() -> Answer {
    Ok(Reply::empty(StatusCode::NO_CONTENT))
}

impl Core {
    /// Answers a request of the admin listener. Always answers.
    pub async fn admin(self: &Arc<Self>, head: Head, body: Bytes) -> Reply {
        let request_id = head.request_id.clone();
        let mut reply = self.admin_call(head, body).await.unwrap_or_else(|e| e.reply());
        reply.set("x-request-id", &request_id);
        reply.set("cache-control", "no-store");
        reply
    }

    async fn admin_call(self: &Arc<Self>, head: Head, body: Bytes) -> Answer {
        self.check_operator(&head)?;
        let mut allowed = Vec::new();
        for call in CALLS {
            let Some(params) = segments(call.path, &head.path) else { continue };
            if call.method == head.method {
                return (call.handle)(self, Input { head, body, params }).await;
            }
            allowed.push(call.method.as_str());
        }
        if allowed.is_empty() {
            return Err(Refused::not_found("call"));
        }
        let reason = format!("use {}", allowed.join(", "));
        Err(Refused::new(StatusCode::METHOD_NOT_ALLOWED, reason))
    }

    fn check_operator(&self, head: &Head) -> Result<(), Refused> {
        let given = head.header("authorization").and_then(bearer).map(digest_of);
        let wanted = self.settings.admin_token.as_ref().map(|token| digest_of(token.expose()));
        match (given, wanted) {
            (Some(given), Some(wanted)) if constant_time_eq(&given, &wanted) => Ok(()),
            _ => Err(Refused::new(StatusCode::UNAUTHORIZED, "the admin token is missing or wrong")),
        }
    }
}
