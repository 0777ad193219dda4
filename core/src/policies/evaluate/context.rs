//! The context of live calls.

use std::collections::BTreeMap;

use rampart_plugins::contract::CallContext;
use uuid::{Builder, Uuid, Variant};

use crate::Core;
use crate::auth::caller::Client;
use crate::platform::crypto::sha256;

pub(super) const NS_PER_MS: u64 = 1_000_000;
const MS_PER_SECOND: u64 = 1_000;

/// Facts about a call that the request's type has no member for, by their keys.
pub type Attributes = BTreeMap<String, String>;

/// The context of a call that no request waits for. A policy cannot tell it from a live one: its id is
/// a UUIDv7 of that second, as the edge makes them. The same `seed` gives the same context.
pub(crate) fn context_at(partner: &str, now: u32, seed: &str) -> CallContext {
    let hash = sha256(&format!("{partner} {now} {seed}"));
    let (mut millis, mut random) = (0, [0; 10]);
    for (position, byte) in hash.iter().enumerate() {
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

/// The context of a call that a request waits for. An id that the caller chose in another form would
/// tell a policy that the call is live, so such a one is replaced.
pub(crate) fn live_context(core: &Core, client: &Client, attributes: &Attributes) -> CallContext {
    let now = u32::try_from(core.clock.unix_seconds()).unwrap_or(u32::MAX);
    let request_id = &*client.request_id;
    let mut context = context_at(&client.tenant.slug, now, request_id);
    if has_edge_form(request_id) {
        request_id.clone_into(&mut context.request_id);
    }
    context.attributes = contract_form(attributes);
    context
}

/// True for an id as the edge makes them: a UUIDv7 in lower case with hyphens.
fn has_edge_form(request_id: &str) -> bool {
    Uuid::try_parse(request_id).is_ok_and(|id| {
        id.get_version_num() == 7
            && id.get_variant() == Variant::RFC4122
            && id.to_string() == request_id
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::clock::Clock;

    #[test]
    fn a_context_without_a_request_has_the_form_of_a_live_one() {
        let live = Clock::system().uuid().unwrap();
        let context = context_at("acme", 1_767_225_600, "fee 0");
        let id: Uuid = context.request_id.parse().unwrap();
        assert_eq!((id.get_version_num(), id.get_variant()), (7, live.get_variant()));
        assert_eq!(live.get_version_num(), 7);
        let (seconds, _) = id.get_timestamp().unwrap().to_unix();
        assert_eq!((seconds, context.rehearsal), (1_767_225_600, false));
        assert_eq!(context_at("acme", 1_767_225_600, "fee 0"), context);
        assert_ne!(context_at("acme", 1_767_225_600, "fee 1").request_id, context.request_id);
    }

    #[test]
    fn an_id_has_the_edges_form_as_it_is_written_there_alone() {
        let own = Clock::system().uuid().unwrap();
        assert!(has_edge_form(&own.to_string()));
        let others = [own.simple().to_string(), own.braced().to_string(), own.urn().to_string()];
        for other in others.iter().map(String::as_str).chain([
            "",
            "the-quote",
            "0190A0B0-C0D0-7000-8000-000000000001",
            "0190a0b0-c0d0-4000-8000-000000000001",
            "0190a0b0-c0d0-7000-c000-000000000001",
        ]) {
            assert!(!has_edge_form(other), "{other}");
        }
    }
}
