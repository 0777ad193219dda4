//! Lists that were written once and serve until the catalogue changes: what a list shows is the
//! catalogue's alone, only the order of its methods is the request's.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use bytes::Bytes;
use http::header::{ETAG, HeaderValue};
use http::{StatusCode, header};
use schemars::SchemaGenerator;

use super::{PaymentMethods, View};
use crate::admission::entity_tag;
use crate::catalogue::Catalogue;
use crate::endpoint::{Respond, Success};
use crate::error::{Error, Result};
use crate::exchange::Reply;

/// Most orders of the methods that are kept of one catalogue; a list in any other order is written
/// for its request. Countries have a few dozen, policies may think of more.
const KEPT_MAX: usize = 1_024;

/// The lists of one catalogue, by the places of their methods in it.
#[derive(Debug, Default)]
pub struct Written(RwLock<HashMap<Vec<usize>, List>>);

/// A list as it is answered.
#[derive(Clone, Debug)]
pub struct List {
    body: Bytes,
    tag: HeaderValue,
}

impl Written {
    /// The list of the methods at these places of `catalogue`, in this order.
    ///
    /// # Errors
    /// When it cannot be written, which is our fault.
    pub(super) fn list(catalogue: &Catalogue, order: &[usize]) -> Result<List> {
        let lists = &catalogue.method_lists.0;
        if let Some(list) = lists.read().unwrap_or_else(PoisonError::into_inner).get(order) {
            return Ok(list.clone());
        }
        let methods = order.iter().filter_map(|place| catalogue.payment_methods.get(*place));
        let payment_methods = methods.map(|method| View::of(method)).collect();
        let body = serde_json::to_vec(&PaymentMethods { payment_methods })
            .map_err(|error| Error::internal("write the reply", error))?;
        let list = List { tag: entity_tag(&body), body: body.into() };
        let mut lists = lists.write().unwrap_or_else(PoisonError::into_inner);
        if lists.len() < KEPT_MAX {
            lists.insert(order.to_vec(), list.clone());
        }
        Ok(list)
    }
}

impl Respond for List {
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
