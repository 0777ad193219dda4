//! Serialized lists by the order of their methods: within one catalogue, nothing else differs
//! between requests. A list that is serialized for its request takes 1.4 times the CPU time (row a2
//! of `make bench`).

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use super::response::PaymentMethods;
use crate::endpoint::PreserializedJson;
use crate::platform::error::Result;
use crate::trading::catalogue::Catalogue;
use rampart_types::ClientId;

/// Most orders of the methods that are cached of one catalogue; a list in any other order is
/// serialized for its request. Countries have a few dozen, policies may produce more.
const CACHED_MAX: usize = 1_024;
/// Most of them that the requests of one client add: its policy may order the methods anew for each.
const CACHED_OF_CLIENT_MAX: usize = 128;

/// Serialized lists of one catalogue.
#[derive(Debug, Default)]
pub(super) struct ResponseCache(RwLock<Lists>);

#[derive(Debug, Default)]
struct Lists {
    /// By the positions of their methods in the catalogue.
    by_order: HashMap<Vec<usize>, MethodList>,
    /// Lists that each client has added.
    of_clients: HashMap<ClientId, usize>,
}

impl Lists {
    /// True if one more of this client's is kept.
    fn has_room(&self, client: ClientId) -> bool {
        let added = self.of_clients.get(&client).copied().unwrap_or_default();
        self.by_order.len() < CACHED_MAX && added < CACHED_OF_CLIENT_MAX
    }
}

/// A serialized list of methods.
pub type MethodList = PreserializedJson<PaymentMethods>;

impl ResponseCache {
    /// The list of the methods at these positions of the catalogue, in this order, for a client.
    ///
    /// # Errors
    /// When it cannot be serialized, which is our fault.
    pub(super) fn list(
        &self,
        client: ClientId,
        catalogue: &Catalogue,
        order: &[usize],
    ) -> Result<MethodList> {
        let lists = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(list) = lists.by_order.get(order) {
            return Ok(list.clone());
        }
        // Nobody who only reads waits for a list that is not kept.
        let is_kept = lists.has_room(client);
        drop(lists);
        let methods = order.iter().filter_map(|at| catalogue.payment_methods.get(*at));
        let list = MethodList::new(&PaymentMethods::new(methods.map(|method| &**method)))?;
        if is_kept {
            let mut lists = self.0.write().unwrap_or_else(PoisonError::into_inner);
            if lists.has_room(client)
                && lists.by_order.insert(order.to_vec(), list.clone()).is_none()
            {
                *lists.of_clients.entry(client).or_default() += 1;
            }
        }
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use uuid::Uuid;

    use super::super::tests::catalogue;
    use super::*;
    use crate::endpoint::Respond as _;

    fn client(number: u128) -> ClientId {
        Uuid::from_u128(number).into()
    }

    #[test]
    fn a_list_is_serialized_once_for_each_order_of_its_methods() {
        let (catalogue, responses) = (catalogue(), ResponseCache::default());
        let body = |order: &[usize]| {
            let reply = responses.list(client(1), &catalogue, order).unwrap().respond().unwrap();
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

    #[test]
    fn one_client_leaves_room_for_the_lists_of_others() {
        let (catalogue, responses) = (catalogue(), ResponseCache::default());
        // Any positions will do: those beyond the methods are passed over.
        let is_kept = |by: u128, order: &[usize]| {
            let body = || responses.list(client(by), &catalogue, order).unwrap().respond().unwrap();
            body().body.as_ptr() == body().body.as_ptr()
        };
        let kept = (0..2 * CACHED_MAX).filter(|at| is_kept(1, &[0, *at])).count();
        assert_eq!(kept, CACHED_OF_CLIENT_MAX);
        assert!(is_kept(2, &[1, 0]), "another client's list");
        assert!(is_kept(1, &[1, 0]), "it is shared");
    }
}
