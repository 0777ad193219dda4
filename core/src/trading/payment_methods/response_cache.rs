//! Responses by the order of their methods: a list shows the catalogue alone, only the order is the
//! request's.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use bytes::Bytes;
use http::header::{ETAG, HeaderValue};
use http::{StatusCode, header};
use schemars::SchemaGenerator;

use super::cache::CatalogueMethods;
use super::{PaymentMethods, View};
use crate::endpoint::{Respond, Success};
use crate::http::reply::{Reply, entity_tag};
use crate::platform::error::{Error, Result};

/// Most orders of the methods that are cached of one catalogue; a list in any other order is
/// serialized for its request. Countries have a few dozen, policies may produce more.
const CACHED_MAX: usize = 1_024;

/// Serialized lists of one catalogue, by the places of their methods in it.
#[derive(Debug, Default)]
pub(super) struct ResponseCache(RwLock<HashMap<Vec<usize>, MethodList>>);

/// A serialized list of methods, with its entity tag.
#[derive(Clone, Debug)]
pub struct MethodList {
    body: Bytes,
    tag: HeaderValue,
}

impl CatalogueMethods {
    /// The list of the methods at these places of the catalogue, in this order.
    ///
    /// # Errors
    /// When it cannot be serialized, which is our fault.
    pub(super) fn list(&self, order: &[usize]) -> Result<MethodList> {
        let lists = &self.responses.0;
        if let Some(list) = lists.read().unwrap_or_else(PoisonError::into_inner).get(order) {
            return Ok(list.clone());
        }
        let methods = order.iter().filter_map(|place| self.catalogue.payment_methods.get(*place));
        let payment_methods = methods.map(|method| View::of(method)).collect();
        let body = serde_json::to_vec(&PaymentMethods { payment_methods })
            .map_err(|error| Error::internal("write the reply", error))?;
        let list = MethodList { tag: entity_tag(&body), body: body.into() };
        let mut lists = lists.write().unwrap_or_else(PoisonError::into_inner);
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
