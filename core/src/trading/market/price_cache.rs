//! Serialized price lists: a client's stays the same until the catalogue, its settings or the fee
//! change, or a price gets too old. Made for each request they cost 1.4 times what a read of the
//! payment methods costs, and 0.8 times as they are kept (row a3 of `make bench`).

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use serde::Serialize;

use super::prices::{ByPair, BySide};
use crate::auth::caller::Client;
use crate::endpoint::PreserializedJson;
use crate::platform::error::Result;
use crate::tenancy::tenants::Tenant;
use crate::trading::catalogue::{Catalogue, PerCatalogue, Price};
use rampart_types::ClientId;

/// Most clients whose lists are kept of one catalogue; further ones get a list that is serialized for
/// their request.
const CLIENTS_MAX: usize = 4_096;

/// The cache of the current catalogue.
pub type PriceCache = PerCatalogue<PriceLists>;

/// The lists of one catalogue.
#[derive(Debug, Default)]
pub struct PriceLists {
    pub(super) by_side: ClientLists<BySide>,
    pub(super) by_pair: ClientLists<ByPair>,
}

/// The last list of each client.
#[derive(Debug)]
pub(super) struct ClientLists<T>(RwLock<HashMap<ClientId, ClientList<T>>>);

#[derive(Debug)]
struct ClientList<T> {
    tenant: Arc<Tenant>,
    fee: Decimal,
    /// When the first of its prices gets too old.
    until: Option<DateTime<Utc>>,
    list: PreserializedJson<T>,
}

impl<T> Default for ClientLists<T> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}

impl<T: Serialize> ClientLists<T> {
    /// The client's list at a fee and `now`: the last one, or what `list` makes.
    ///
    /// # Errors
    /// When it cannot be serialized, which is our fault.
    pub(super) fn get(
        &self,
        client: &Client,
        fee: Decimal,
        now: DateTime<Utc>,
        list: impl FnOnce() -> T,
    ) -> Result<PreserializedJson<T>> {
        let kept = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = kept.get(&client.id()).filter(|last| last.is_of(client, fee, now)) {
            return Ok(last.list.clone());
        }
        drop(kept);
        let list = PreserializedJson::new(&list())?;
        let mut kept = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < CLIENTS_MAX || kept.contains_key(&client.id()) {
            let (tenant, until) = (Arc::clone(&client.tenant), first_end(&client.catalogue, now));
            kept.insert(client.id(), ClientList { tenant, fee, until, list: list.clone() });
        }
        Ok(list)
    }
}

impl<T> ClientList<T> {
    fn is_of(&self, client: &Client, fee: Decimal, now: DateTime<Utc>) -> bool {
        Arc::ptr_eq(&self.tenant, &client.tenant)
            && self.fee == fee
            && self.until.is_none_or(|until| now < until)
    }
}

/// When the first of the prices that are fresh at `now` gets too old.
fn first_end(catalogue: &Catalogue, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let prices = catalogue.pairs.values().filter_map(|pair| pair.price.as_ref());
    prices.filter(|price| price.is_fresh(now)).filter_map(Price::stale_at).min()
}
