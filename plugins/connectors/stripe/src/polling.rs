//! The second source of facts: the account's events, looked at in turns. It finds what a lost webhook
//! would have told, and all that happened while the connector was away.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use rampart_connector::pace::pause;

use crate::Connector;
use crate::api::{ApiError, Event};
use crate::settings::PollingSettings;

/// Events are looked at once more for so long after their time, in seconds: the provider may list
/// one later than a younger one.
const OVERLAP_SECONDS: i64 = 300;

/// Looks at the account's events without end.
///
/// # Errors
/// When the clock is before 1970.
pub(crate) async fn poll(connector: &Connector, settings: &PollingSettings) -> Result<(), String> {
    let lookback = i64::try_from(settings.lookback_seconds).unwrap_or(i64::MAX);
    let mut seen = Seen { since: now()?.saturating_sub(lookback), ids: HashMap::new() };
    loop {
        match connector.events_since(seen.since).await {
            Ok(events) => seen.take(connector, events).await,
            Err(error) => tracing::warn!(%error, "the account's events cannot be read"),
        }
        pause(Duration::from_secs(settings.interval_seconds)).await;
    }
}

/// Seconds since 1970.
#[expect(clippy::disallowed_methods, reason = "the provider's events are asked for by time")]
pub(crate) fn now() -> Result<i64, String> {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let since = since.map_err(|_| "the clock is before 1970".to_owned())?;
    Ok(i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

impl Connector {
    /// The account's events since a time, oldest first.
    async fn events_since(&self, since: i64) -> Result<Vec<Event>, ApiError> {
        let mut events = self.stripe.events(since).await?;
        // Of one second, the order is the provider's.
        events.reverse();
        events.sort_by_key(|event| event.created);
        Ok(events)
    }
}

/// Events that need no second look.
struct Seen {
    /// Time from which events are looked at, in seconds since 1970.
    since: i64,
    /// Those since then that were taken, with their times.
    ids: HashMap<String, i64>,
}

impl Seen {
    /// Takes events, oldest first, up to one that cannot be taken yet.
    async fn take(&mut self, connector: &Connector, events: Vec<Event>) {
        for event in events {
            if self.ids.contains_key(&event.id) {
                continue;
            }
            if connector.take(&event).await.is_err() {
                return;
            }
            self.remember(event);
        }
    }

    fn remember(&mut self, event: Event) {
        self.ids.insert(event.id, event.created);
        self.since = self.since.max(event.created.saturating_sub(OVERLAP_SECONDS));
        self.ids.retain(|_, created| *created >= self.since);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use serde::Deserialize as _;
    use serde_json::{Value, json};

    use super::*;
    use crate::fake;

    #[tokio::test]
    async fn an_event_whose_object_cannot_be_read_is_passed_over() {
        let forbidden = "the provider's key lacks the permission for disputes";
        let told = &["health", "payment.received"][..];
        for (status, expected, reason) in [
            (403, told, forbidden),
            // It lacks what every dispute has.
            (200, told, "the provider's disputes cannot be read"),
            // A key that is refused as a whole may be good again: what it was to read waits.
            (401, &[][..], ""),
        ] {
            let (tell, told) = mpsc::sync_channel(8);
            let connector = fake::connector(move |heard| {
                let is = |line: &str| heard.line.starts_with(line);
                if is("get /v1/disputes/dp_1") {
                    return (status, json!({"error": {"message": "no permission"}}));
                }
                if is("post /connectors/v1/events") {
                    tell.send(heard.body.clone()).unwrap();
                    return (200, json!({"duplicate": false}));
                }
                let payment = json!({"id": "pi_1", "status": "succeeded", "amount": 100,
                    "currency": "eur", "created": 1});
                (200, payment)
            })
            .await;
            let event = |id: &str, kind: &str, object: &str| {
                let document = json!({"id": id, "type": kind, "created": 1_000,
                    "data": {"object": {"id": object}}});
                Event::deserialize(document).unwrap()
            };
            let events = vec![
                event("evt_1", "charge.dispute.created", "dp_1"),
                event("evt_2", "payment_intent.succeeded", "pi_1"),
            ];
            let mut seen = Seen { since: 0, ids: HashMap::new() };
            seen.take(&connector, events).await;
            let told: Vec<Value> =
                told.try_iter().map(|body| serde_json::from_str(&body).unwrap()).collect();
            let kinds: Vec<_> = told.iter().map(|fact| fact["kind"].as_str().unwrap()).collect();
            assert_eq!((kinds.as_slice(), seen.ids.len()), (expected, expected.len()), "{status}");
            if let Some(health) = told.first() {
                assert_eq!(health["outcome"], "event passed over");
                assert_eq!(
                    (&health["reason"], &health["providerReference"]),
                    (&json!(reason), &json!("evt_1"))
                );
            }
        }
    }

    #[test]
    fn what_was_taken_is_remembered_as_long_as_it_is_listed() {
        let event = |id: &str, created: i64| {
            let document = json!({"id": id, "type": "x", "created": created,
                "data": {"object": {"id": "pi_1"}}});
            Event::deserialize(document).unwrap()
        };
        let mut seen = Seen { since: 0, ids: HashMap::new() };
        seen.remember(event("a", 1_000));
        assert_eq!((seen.since, seen.ids.len()), (700, 1));
        seen.remember(event("b", 1_300));
        assert_eq!((seen.since, seen.ids.len()), (1_000, 2));
        seen.remember(event("late", 1_100));
        assert_eq!((seen.since, seen.ids.len()), (1_000, 3), "time does not go back");
        seen.remember(event("c", 1_301));
        assert_eq!((seen.since, seen.ids.len()), (1_001, 3));
        assert!(!seen.ids.contains_key("a"));
    }
}
