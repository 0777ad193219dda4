//! Everything that the head alone decides, in the order of section 1.5 of the contract.

use http::{Method, StatusCode};
use pingora_http::RequestHeader;
use rampart_core::endpoint::admission::{Admission, NotAdmitted};
use rampart_core::http::reply::Reply;
use rampart_core::http::request::{BODY_BYTES_MAX, Head};
use rampart_core::platform::error::Code;
use rampart_core::platform::network::network;
use rampart_core::platform::rate_limit::Decision;
use rampart_core::platform::shared_rates::SharedGcra;

use super::body::{BodyError, content_length};
use super::context::Context;
use super::path;
use super::{Gateway, PublicListener};
use crate::server::ConnectionInfo;

impl Gateway {
    /// Gives the request as the core takes it, admitted: its size and its path are sound, its route
    /// is known, its address and its client are within their rates.
    ///
    /// # Errors
    /// The finished answer.
    pub(super) fn admit(
        &self,
        public: &PublicListener,
        request: &RequestHeader,
        connection: &ConnectionInfo,
        context: &mut Context,
    ) -> Result<(Head, Admission), Box<Reply>> {
        context.client_address = public.clients.of_request(connection.peer, &request.headers);
        self.check_size(request, context)?;
        let address = self.check_address(public, connection, context)?;
        if request.method == Method::CONNECT || !path::is_normal(request.uri.path()) {
            return Err(Box::new(self.no_route(&request.method, context)));
        }
        let head = head(request, context);
        match self.core.admit(&head, Some(address)) {
            Ok(admission) => {
                context.labels = admission.labels();
                Ok((head, admission))
            }
            Err(NotAdmitted { reply, labels }) => {
                if let Some(labels) = labels {
                    context.labels = labels;
                }
                Err(reply)
            }
        }
    }

    /// Checks the announced length of the body; that of the target was checked with the framing.
    fn check_size(&self, request: &RequestHeader, context: &Context) -> Result<(), Box<Reply>> {
        let declared = content_length(&request.headers).unwrap_or(0);
        // Every route takes a smaller one; only above it the route's own bound is looked up.
        if declared > BODY_BYTES_MAX as u64 {
            let (method, path) = (&request.method, request.uri.path());
            let (bound, code) = self.core.apis.partners.body_bound(method, path);
            if declared > bound as u64 {
                return Err(Box::new(self.refuse_body(context, BodyError::TooLarge, code)));
            }
        }
        Ok(())
    }

    /// Checks the rate of an address, before anybody has proven who they are.
    fn check_address(
        &self,
        public: &PublicListener,
        connection: &ConnectionInfo,
        context: &Context,
    ) -> Result<Decision, Box<Reply>> {
        let now = context.began_ns;
        let network = network(context.client_address);
        let new = || SharedGcra::new(&format!("address/{network}"));
        let bucket = connection.bucket(network, now, || public.addresses.bucket_or(network, new));
        let quota = self.core.settings.ratelimit.address;
        let decision = self.core.shared_rates.take(&bucket, quota, 1, now);
        if decision.allowed {
            return Ok(decision);
        }
        self.core.metrics.rate_limited("address", "");
        Err(Box::new(self.core.refuse_rate(&context.request_id, decision)))
    }

    fn no_route(&self, method: &Method, context: &Context) -> Reply {
        let id = &context.request_id;
        if method == Method::CONNECT {
            let status = StatusCode::METHOD_NOT_ALLOWED;
            let mut reply =
                self.core.refuse(id, status, Code::RouteNotFound, "there are no tunnels");
            reply.set("allow", "");
            return reply;
        }
        let detail = "the path is not in normal form";
        self.core.refuse(id, StatusCode::NOT_FOUND, Code::RouteNotFound, detail)
    }
}

/// The head of a request, as the core takes it.
pub(super) fn head(request: &RequestHeader, context: &Context) -> Head {
    Head {
        method: request.method.clone(),
        path: request.uri.path().to_owned(),
        query: request.uri.query().map(str::to_owned),
        headers: request.headers.clone(),
        peer: context.client_address,
        client_certificate: context.client_certificate.clone(),
        request_id: context.request_id.clone(),
    }
}
