//! The way in and the way out of the core: what a listener calls.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, ETAG, HeaderName, HeaderValue, IF_NONE_MATCH};
use http::{Method, StatusCode};

use crate::Core;
use crate::auth::caller::{Client, Credential};
use crate::auth::client_credentials;
use crate::endpoint::router::{Found, allow};
use crate::endpoint::{Bucket, Cache, Deprecation, Route, text_amounts};
use crate::http::reply::{Reply, entity_tag};
use crate::http::request::BODY_BYTES_MAX;
use crate::http::request::{Entity, Head, Input};
use crate::http::upload::{Upload, UploadError, UploadedBody};
use crate::platform::db::tenant;
use crate::platform::error::{Code, Error, Result};
use crate::platform::rate_limit::Decision;

/// A request that may go on: its route is known, its client proven, its rates not exceeded.
#[derive(Debug)]
pub struct Admission {
    /// The matched route.
    pub route: &'static Route,
    /// The authenticated client; `None` on a route without authentication.
    pub client: Option<Client>,
    params: Vec<(&'static str, String)>,
    rates: Vec<(&'static str, Decision)>,
    /// Version of the catalogue that the answer shows, if it shows one.
    revision: Option<i64>,
    /// The `Link` to what replaces a deprecated operation.
    successor: Option<String>,
}

impl Admission {
    /// Its labels.
    pub fn labels(&self) -> Labels {
        let tenant = self.client.as_ref().map(|client| &client.tenant);
        Labels {
            route: self.route.path,
            partner: tenant.map_or_else(Arc::default, |tenant| Arc::clone(&tenant.slug)),
            partner_class: tenant.map_or("none", |tenant| tenant.mode.as_str()),
        }
    }

    /// Says in an answer what is left to its client, if it has one and the answer does not yet say it.
    pub fn write_rates(&self, reply: &mut Reply) {
        if !self.rates.is_empty() && !reply.has_rate_limits() {
            reply.set_rate_limits(&self.rates);
        }
    }
}

/// Route and client of a request, as metrics, log and traces show them.
#[derive(Debug)]
pub struct Labels {
    /// Path of the route as declared.
    pub route: &'static str,
    /// The client's slug; empty without one.
    pub partner: Arc<str>,
    /// The client's class: `test` or `live`; `none` without one.
    pub partner_class: &'static str,
}

/// A request that may not go on.
#[derive(Debug)]
pub struct NotAdmitted {
    /// The finished answer.
    pub reply: Box<Reply>,
    /// Its labels, with the client if that is proven; `None` when no route is matched.
    pub labels: Option<Labels>,
}

impl Core {
    /// Finds the route, proves the client and takes from its buckets. Reads no body, asks no
    /// database. `address` is what is left to the client's address, if that has a limit: the answer
    /// promises no more.
    ///
    /// # Errors
    /// The finished answer.
    pub fn admit(
        &self,
        head: &Head,
        address: Option<Decision>,
    ) -> std::result::Result<Admission, NotAdmitted> {
        let (route, params) = match self.apis.partners.find(&head.method, &head.path) {
            Found::Endpoint(route, params) => (route, params),
            Found::OtherMethods(methods) => {
                let reply = Box::new(self.not_allowed(head, &methods));
                return Err(NotAdmitted { reply, labels: None });
            }
            Found::Nothing => return Err(self.refused(head, &Code::RouteNotFound.into(), None)),
        };
        let (rates, revision) = (Vec::new(), None);
        let successor = route.deprecation.map(|deprecation| deprecation.link(&params));
        let mut admission = Admission { route, client: None, params, rates, revision, successor };
        if route.client {
            let client = match client_credentials::client(self, head) {
                Ok(client) => client,
                Err(error) => return Err(self.refused(head, &error, Some(&admission))),
            };
            let admitted = self
                .take_rates(route, &client, head.query.as_deref(), &mut admission.rates)
                .and_then(|()| require_mode(route, &client))
                .and_then(|()| require_scope(route, &client));
            admission.revision = route.shows_catalogue().then_some(client.catalogue.revision);
            admission.client = Some(client);
            // Before a refusal too: it shows what is left, as every other answer does.
            for (_, decision) in &mut admission.rates {
                *decision = address.map_or(*decision, |address| decision.within(&address));
            }
            if let Err(error) = admitted {
                return Err(self.refused(head, &error, Some(&admission)));
            }
        }
        Ok(admission)
    }

    fn take_rates(
        &self,
        route: &Route,
        client: &Client,
        query: Option<&str>,
        rates: &mut Vec<(&'static str, Decision)>,
    ) -> Result<()> {
        let (tenant, now) = (&client.tenant, self.clock.monotonic_ns());
        let take = |bucket, quota, n| self.shared_rates.take(bucket, quota, n, now);
        rates.push(("client", take(&tenant.buckets.client, tenant.rates.client, 1)));
        if route.bucket == Some(Bucket::Quotes) && rates.iter().all(|(_, d)| d.allowed) {
            let cost = (route.cost)(self, client, query);
            rates.push(("quotes", take(&tenant.buckets.quotes, tenant.rates.quotes, cost)));
        }
        match rates.iter().find(|(_, decision)| !decision.allowed) {
            None => Ok(()),
            Some((bucket, decision)) => {
                self.metrics.rate_limited(bucket, &tenant.slug);
                Err(Error::rate_limited(bucket, *decision))
            }
        }
    }

    /// Runs an admitted request. Always answers. Takes client and parameters out of the admission; its
    /// rates stay, for the answer of a caller that stops this one.
    pub async fn answer(
        self: &Arc<Self>,
        admission: &mut Admission,
        head: Head,
        body: impl Into<Entity>,
    ) -> Reply {
        let request_id = head.request_id.clone();
        let if_none_match = head.headers.get(IF_NONE_MATCH).cloned();
        let spells_amounts = text_amounts::wanted(&head.headers);
        let (body, upload) = match body.into() {
            Entity::Bytes(bytes) => (bytes, None),
            Entity::Upload(upload) => (upload.text.clone(), Some(upload)),
        };
        let input = Input {
            head,
            body,
            upload,
            document: serde_json::Value::Null,
            params: std::mem::take(&mut admission.params),
            now: self.clock.now(),
            proven: http::Extensions::new(),
        };
        let client = admission.client.take();
        let tenant = client.as_ref().map(Client::id);
        let run = admission.route.run(Arc::clone(self), client, input);
        let result = tenant::run(tenant, run).await;
        let mut reply = result.unwrap_or_else(|error| self.reply_to(&error, &request_id));
        for code in reply.codes.iter().filter(|code| !admission.route.declares(**code)) {
            tracing::error!(route = ?admission.route, code = code.as_str(), "undeclared code");
        }
        if spells_amounts {
            text_amounts::apply(self.apis.partners, admission.route, &mut reply);
        }
        if admission.route.cache == Cache::Revalidate && reply.status == StatusCode::OK {
            let asked = if_none_match.as_ref().and_then(|value| value.to_str().ok());
            revalidate(&mut reply, asked);
        }
        self.finish(&mut reply, &request_id, Some(admission));
        reply
    }

    /// Both steps at once, for callers that have the whole request.
    pub async fn handle(self: &Arc<Self>, head: Head, body: Bytes) -> Reply {
        let (path, headers) = (head.path.clone(), head.headers.clone());
        let request_id = head.request_id.clone();
        let reply = self.handle_whole(head, body).await;
        self.for_reader(&path, &headers, &request_id, reply)
    }

    async fn handle_whole(self: &Arc<Self>, head: Head, body: Bytes) -> Reply {
        let mut admission = match self.admit(&head, None) {
            Ok(admission) => admission,
            Err(refusal) => return *refusal.reply,
        };
        let (bound, code) = admission.route.body.bound();
        let mut reply = if body.len() > bound {
            let status = StatusCode::PAYLOAD_TOO_LARGE;
            self.refuse(&head.request_id, status, code, "the body is too large")
        } else if body.len() <= BODY_BYTES_MAX || !admission.route.body.takes_images() {
            self.answer(&mut admission, head, body).await
        } else {
            match self.uploaded(&body, admission.labels().partner).await {
                Ok(upload) => self.answer(&mut admission, head, Entity::Upload(upload)).await,
                Err(error) => self.refuse_upload(&head.request_id, error, code),
            }
        };
        admission.write_rates(&mut reply);
        reply
    }

    async fn uploaded(
        self: &Arc<Self>,
        body: &[u8],
        partner: Arc<str>,
    ) -> std::result::Result<UploadedBody, UploadError> {
        let mut upload = Upload::begin(self, partner);
        for chunk in body.chunks(BODY_BYTES_MAX) {
            upload.take(chunk)?;
            upload.ready().await?;
        }
        upload.finish().await
    }

    /// The answer to an upload that ended early.
    pub fn refuse_upload(&self, request_id: &str, error: UploadError, too_large: Code) -> Reply {
        match error {
            UploadError::TooLarge => {
                let status = StatusCode::PAYLOAD_TOO_LARGE;
                self.refuse(request_id, status, too_large, "only images may be large")
            }
            UploadError::ShareUsedUp => {
                self.refuse_share(request_id, "keep one more upload of this partner")
            }
            UploadError::Unavailable => {
                let status = StatusCode::SERVICE_UNAVAILABLE;
                self.refuse(request_id, status, Code::GeneralError, "keep one more upload")
            }
        }
    }

    /// 503 for a sender that has used up its own share.
    pub fn refuse_share(&self, request_id: &str, doing: &'static str) -> Reply {
        let mut reply = self.reply_to(&Error::share_used_up(doing), request_id);
        self.finish(&mut reply, request_id, None);
        reply
    }

    /// An answer that the edge itself gives: too large, too slow, ambiguous, shed.
    pub fn refuse(
        &self,
        request_id: &str,
        status: StatusCode,
        code: Code,
        detail: &'static str,
    ) -> Reply {
        let error = if status == StatusCode::SERVICE_UNAVAILABLE {
            Error::unavailable(detail)
        } else {
            Error::with_status(code, status, detail)
        };
        let mut reply = error.reply(request_id);
        self.finish(&mut reply, request_id, None);
        reply
    }

    /// 429 for an address that has not yet said who it is.
    pub fn refuse_rate(&self, request_id: &str, decision: Decision) -> Reply {
        let mut reply = Error::rate_limited("address", decision).reply(request_id);
        self.finish(&mut reply, request_id, None);
        reply
    }

    fn refused(&self, head: &Head, error: &Error, admission: Option<&Admission>) -> NotAdmitted {
        let mut reply = Box::new(self.reply_to(error, &head.request_id));
        self.finish(&mut reply, &head.request_id, admission);
        NotAdmitted { reply, labels: admission.map(Admission::labels) }
    }

    fn not_allowed(&self, head: &Head, methods: &[&Method]) -> Reply {
        let mut reply = self.refuse(
            &head.request_id,
            StatusCode::METHOD_NOT_ALLOWED,
            Code::RouteNotFound,
            "see Allow",
        );
        reply.set("allow", allow(methods));
        reply
    }

    /// Headers that every answer carries (section 1 of the contract).
    pub(crate) fn finish(
        &self,
        reply: &mut Reply,
        request_id: &str,
        admission: Option<&Admission>,
    ) {
        reply.set("x-request-id", request_id);
        let headers = &mut reply.headers;
        if !headers.contains_key(ETAG) && !headers.contains_key(CACHE_CONTROL) {
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        }
        let Some(admission) = admission else { return };
        if let Some(revision) = admission.revision {
            headers.insert(CATALOG_VERSION, revision.into());
        }
        if let Some(link) = &admission.successor {
            Deprecation::write(reply, link);
        }
        text_amounts::vary(self.apis.partners, admission.route, reply);
        admission.write_rates(reply);
    }
}

const CATALOG_VERSION: HeaderName = HeaderName::from_static("x-catalog-version");

/// Refuses a live client where only test clients have the route: for it there is none.
fn require_mode(route: &Route, client: &Client) -> Result<()> {
    if route.test_only && !client.tenant.is_test() {
        return Err(Code::RouteNotFound.into());
    }
    Ok(())
}

/// Refuses an API key that lacks the route's scope.
fn require_scope(route: &Route, client: &Client) -> Result<()> {
    match (route.scope, &client.credential) {
        (Some(scope), Credential::ApiKey(key)) if !key.scopes.permit(scope) => {
            let missing = format!("it lacks the scope {}", scope.as_str());
            Err(Error::with_detail(Code::ApiKeyInvalid, missing))
        }
        _ => Ok(()),
    }
}

/// Adds the `ETag` unless the endpoint knew it, and turns the answer into 304 when the client has it
/// already (RFC 9110, 13.1.2).
fn revalidate(reply: &mut Reply, asked: Option<&str>) {
    let tag = reply.headers.remove(ETAG).unwrap_or_else(|| entity_tag(&reply.body));
    let known = asked.is_some_and(|asked| {
        asked.split(',').any(|one| {
            let one = one.trim();
            one == "*" || one.trim_start_matches("W/") == tag
        })
    });
    if known {
        *reply = Reply::empty(StatusCode::NOT_MODIFIED);
    }
    reply.headers.insert(ETAG, tag);
    reply.headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
}
