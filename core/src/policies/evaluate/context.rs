//! The context of live calls.

use std::collections::BTreeMap;

use rampart_plugins::contract::CallContext;
use ring::digest::{SHA256, digest};
use uuid::Builder;

use crate::Core;
use crate::auth::caller::Client;

pub(crate) const NS_PER_MS: u64 = 1_000_000;
const MS_PER_SECOND: u64 = 1_000;

/// Facts about a call that the request's type has no member for, by their keys.
pub(crate) type Attributes = BTreeMap<String, String>;

/// The context of a call that no request waits for. A policy cannot tell it from a live one: its id is
/// a UUIDv7 of that second, as the edge makes them. The same `seed` gives the same context.
pub(crate) fn context_at(partner: &str, now: u32, seed: &str) -> CallContext {
    let hash = digest(&SHA256, format!("{partner} {now} {seed}").as_bytes());
    let (mut millis, mut random) = (0, [0; 10]);
    for (position, byte) in hash.as_ref().iter().enumerate() {
        match random.get_mut(position) {
            Some(random) => *random = *byte,
            None => millis = (millis * 256 + u64::from(*byte)) % MS_PER_SECOND,
        }
    }
    let millis = u64::from(now) * MS_PER_SECOND + millis;
    CallContext {
        partner: partner.to_owned(),
        request_id: Builder::from_unix_timestamp_millis(millis, &random).into_uuid().to_string(),
        now,
        rehearsal: false,
        attributes: Vec::new(),
    }
}

/// Attributes as the contract has them: sorted by key.
pub(crate) fn contract_form(attributes: &Attributes) -> Vec<(String, String)> {
    attributes.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// The context of a call that a request waits for.
pub(crate) fn live_context(core: &Core, client: &Client, attributes: &Attributes) -> CallContext {
    CallContext {
        partner: client.tenant.slug.to_string(),
        request_id: client.request_id.to_string(),
        now: u32::try_from(core.clock.unix_seconds()).unwrap_or(u32::MAX),
        rehearsal: false,
        attributes: contract_form(attributes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::clock::Clock;

    #[test]
    fn a_context_without_a_request_has_the_form_of_a_live_one() {
        let live = Clock::system().uuid().unwrap();
        let context = context_at("acme", 1_767_225_600, "fee 0");
        let id: uuid::Uuid = context.request_id.parse().unwrap();
        assert_eq!((id.get_version_num(), id.get_variant()), (7, live.get_variant()));
        assert_eq!(live.get_version_num(), 7);
        let (seconds, _) = id.get_timestamp().unwrap().to_unix();
        assert_eq!((seconds, context.rehearsal), (1_767_225_600, false));
        assert_eq!(context_at("acme", 1_767_225_600, "fee 0"), context);
        assert_ne!(context_at("acme", 1_767_225_600, "fee 1").request_id, context.request_id);
    }
}
