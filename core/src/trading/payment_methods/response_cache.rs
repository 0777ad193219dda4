//! Serialized lists by the order of their methods: within one catalogue, nothing else differs
//! between requests.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use bytes::Bytes;
use http::header::{ETAG, HeaderValue};
use http::{StatusCode, header};
use schemars::SchemaGenerator;

use super::response::PaymentMethods;
use crate::endpoint::{Respond, Success};
use crate::http::reply::{Reply, entity_tag};
use crate::platform::error::{Error, Result};
use crate::trading::catalogue::Catalogue;

/// Most orders of the methods that are cached of one catalogue; a list in any other order is
/// serialized for its request. Countries have a few dozen, policies may produce more.
const CACHED_MAX: usize = 1_024;

/// Serialized lists of one catalogue, by the positions of their methods in it.
#[derive(Debug, Default)]
pub(super) struct ResponseCache(RwLock<HashMap<Vec<usize>, MethodList>>);

/// A serialized list of methods, with its entity tag.
#[derive(Clone, Debug)]
pub struct MethodList {
    body: Bytes,
    tag: HeaderValue,
}

impl ResponseCache {
    /// The list of the methods at these positions of the catalogue, in this order.
    ///
    /// # Errors
    /// When it cannot be serialized, which is our fault.
    pub(super) fn list(&self, catalogue: &Catalogue, order: &[usize]) -> Result<MethodList> {
        if let Some(list) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(order) {
            return Ok(list.clone());
        }
        let methods = order.iter().filter_map(|at| catalogue.payment_methods.get(*at));
        let body = serde_json::to_vec(&PaymentMethods::new(methods.map(|method| &**method)))
            .map_err(|error| Error::internal("write the reply", error))?;
        let list = MethodList { tag: entity_tag(&body), body: body.into() };
        let mut lists = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if lists.len() < CACHED_MAX {
            lists.insert(order.to_vec(), list.clone());
        }
        Ok(list)
    }
}

impl Respond for MethodList {
    fn respond(self) -> Result<Reply> {
        let mut reply = Reply::empty(StatusCode::OK);
        let json = HeaderValue::from_static("application/json");
        reply.headers.insert(header::CONTENT_TYPE, json);
        reply.headers.insert(ETAG, self.tag);
        reply.body = self.body;
        Ok(reply)
    }

    fn successes(schemas: &mut SchemaGenerator) -> Vec<Success> {
        vec![Success::json::<PaymentMethods>(StatusCode::OK, schemas)]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::tests::catalogue;
    use super::*;

    #[test]
    fn a_list_is_serialized_once_for_each_order_of_its_methods() {
        let (catalogue, responses) = (catalogue(), ResponseCache::default());
        let body = |order: &[usize]| {
            let reply = responses.list(&catalogue, order).unwrap().respond().unwrap();
            (reply.headers["etag"].clone(), reply.body)
        };
        let (tag, first) = body(&[0, 1]);
        let (same_tag, again) = body(&[0, 1]);
        assert_eq!((&tag, first.as_ptr()), (&same_tag, again.as_ptr()), "it was serialized again");
        let (other_tag, reversed) = body(&[1, 0]);
        assert!(other_tag != tag && reversed != first);
        let json: Value = serde_json::from_slice(&reversed).unwrap();
        assert_eq!(json["paymentMethods"][0]["code"], "b");
    }
}
