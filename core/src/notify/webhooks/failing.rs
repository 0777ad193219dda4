//! Endpoints that have failed for days or answered 410: they are switched off, and their partner is
//! told.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use uuid::Uuid;

use crate::Core;
use crate::notify::events::{self, EventType, NewEvent};
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::platform::mail::{Kind, Message};
use crate::platform::sweeps::Sweep;
use rampart_types::{ClientId, EmailAddress, WebhookEndpointId};

/// Time without a success, and of one delivery's failure, after which an endpoint is switched off.
pub(crate) const FAILING_MAX: TimeDelta = TimeDelta::days(3);

/// Receiver of mail to a partner without an address: it is kept for operators to see, and not sent.
const NO_CONTACT: &str = "nobody@rampart.invalid";

/// Switches off those of these endpoints that answered 410 (`true`) or have had no success for
/// [`FAILING_MAX`]: each with its event and its mail. One that cannot be switched off, or that somebody
/// holds, is passed over in the name of this worker.
///
/// # Errors
/// When the database cannot be used; the next failure tries again.
pub(crate) async fn switch_off(
    core: &Core,
    worker: &'static str,
    failed: &BTreeMap<(ClientId, WebhookEndpointId), bool>,
) -> Result<()> {
    if failed.is_empty() {
        return Ok(());
    }
    let now = core.clock.now();
    let (clients, endpoints): (Vec<_>, Vec<_>) =
        failed.keys().map(|(client, endpoint)| (client.uuid(), endpoint.uuid())).unzip();
    let gone: Vec<bool> = failed.values().copied().collect();
    // Almost always none.
    let over = sqlx::query!(
        "select w.client_id, w.endpoint_id from webhook_endpoint w \
         join unnest($1::uuid[], $2::uuid[], $4::bool[]) as f (client_id, endpoint_id, is_gone) \
             on f.client_id = w.client_id and f.endpoint_id = w.endpoint_id \
         where w.disabled_at is null and (f.is_gone or w.failing_since <= $3) \
         order by w.client_id, w.endpoint_id",
        &clients,
        &endpoints,
        now - FAILING_MAX,
        &gone,
    )
    .fetch_all(&core.db)
    .await?;
    let over = over.into_iter().map(|row| (row.client_id, row.endpoint_id)).collect();
    let switch_off = |client: ClientId, endpoint: Uuid| {
        let endpoint = WebhookEndpointId::from(endpoint);
        let is_gone = failed.get(&(client, endpoint)).copied().unwrap_or_default();
        switch_off_one(core, client, endpoint, is_gone)
    };
    Sweep::new(&core.metrics, worker).settle(over, switch_off).await?;
    Ok(())
}

/// Switches an endpoint off, if it is still failing or gone; false if it is not.
async fn switch_off_one(
    core: &Core,
    client: ClientId,
    endpoint: WebhookEndpointId,
    is_gone: bool,
) -> Result<bool> {
    let now = core.clock.now();
    let mut tx = core.db.begin().await?;
    let off = sqlx::query!(
        "update webhook_endpoint set disabled_at = $3 \
         where client_id = $1 and endpoint_id = $2 and disabled_at is null \
         and ($5 or failing_since <= $4) \
         returning url, coalesce(failing_since, $3) as \"failing_since!\"",
        client.uuid(),
        endpoint.uuid(),
        now,
        now - FAILING_MAX,
        is_gone,
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(off) = off else { return Ok(false) };
    let payload = json!({
        "endpointId": endpoint, "url": off.url, "failingSince": off.failing_since,
        "disabledAt": now,
    });
    let event = NewEvent { kind: EventType::WebhookDisabled, order_id: None, payload };
    events::record(&mut tx, core, client, event, None).await?;
    let failing_since = (!is_gone).then_some(off.failing_since);
    mail(&mut tx, core, client, &off.url, failing_since).await?;
    tx.commit().await?;
    tracing::warn!(%client, %endpoint, "a webhook endpoint that fails was switched off");
    Ok(true)
}

/// Tells the partner's people of an endpoint that has failed since a time, or answered 410.
async fn mail(
    tx: &mut Connection,
    core: &Core,
    client: ClientId,
    url: &str,
    since: Option<DateTime<Utc>>,
) -> Result<()> {
    let contact: Option<String> = sqlx::query_scalar!(
        "select contact_email from client where client_id = $1",
        client.uuid(),
    )
    .fetch_one(&mut *tx)
    .await?;
    let contact = contact.and_then(|address| address.parse::<EmailAddress>().ok());
    let sent = contact.is_some();
    let Some(to) = contact.or_else(|| NO_CONTACT.parse().ok()) else { return Ok(()) };
    let answer = match since {
        Some(since) => format!("no event with 2xx since {}", since.format("%Y-%m-%d %H:%M UTC")),
        None => "an event with 410, which asks for no more of them".to_owned(),
    };
    let text = format!(
        "Your webhook endpoint {url} has answered {answer}. It is switched off: nothing is sent \
         there any more.\n\n\
         When it works again, remove it and register it anew. Events that it has missed are in the \
         event log, and can be sent again from there.\n"
    );
    let partner = core.snapshots.current().tenants.get(&client).map(|partner| partner.name.clone());
    let subject = match partner {
        Some(name) => format!("A webhook endpoint of {name} is switched off"),
        None => "Your webhook endpoint is switched off".to_owned(),
    };
    let message = Message { to, subject, text, secrets: Some(Vec::new()) };
    message.enqueue_to_partner(tx, core, client, Kind::WebhookDisabled, sent).await
}
