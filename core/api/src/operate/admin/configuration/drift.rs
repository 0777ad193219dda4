//! Drift: members that differ from what the applied configurations named last, subject by subject.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::difference::leaves;
use super::document::Document;
use super::{Configuration, PARTNERS_MAX};
use crate::Core;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::platform::metrics::Measurement;

/// Members by subject.
type Members = BTreeMap<String, Map<String, Value>>;

/// Keeps the values of the members that a document names, which has just been written, and those kept
/// before of subjects that it does not name and that are still there. The caller has locked the table.
/// True if they are others than before: drift is counted from them.
pub(super) async fn keep(conn: &mut Connection, document: &Document, actor: &str) -> Result<bool> {
    let mut stored = members(Configuration::stored(conn).await?);
    let kept = sqlx::query_scalar!("select members from applied_configuration");
    let kept = kept.fetch_optional(&mut *conn).await?.unwrap_or_default();
    let before: Members = serde_json::from_value(kept).unwrap_or_default();
    let mut wanted = before.clone();
    wanted.retain(|subject, _| stored.contains_key(subject));
    for (subject, named) in &document.named {
        if let Some(mut members) = stored.remove(subject) {
            members.retain(|member, _| named.contains(member));
            wanted.insert(subject.clone(), members);
        }
    }
    sqlx::query!(
        "insert into applied_configuration (members, applied_by, applied_at) \
         values ($1, $2, now()) \
         on conflict (only_row) do update set members = excluded.members, \
             applied_by = excluded.applied_by, applied_at = excluded.applied_at, drift = 0, \
             counted_at_revision = 0",
        json!(wanted),
        actor,
    )
    .execute(conn)
    .await?;
    Ok(wanted != before)
}

/// Counts the members that have become different since the configuration was applied, if
/// anything has changed since they were counted last. Beside more partners than a configuration
/// may have the count stays as it is.
///
/// # Errors
/// When the database cannot be used; the metric stays as it is, until it is too old.
pub async fn measure_drift(core: &Core) -> Result<()> {
    let mut tx = core.db.begin().await?;
    let applied = sqlx::query!(
        r#"
        select members, drift, counted_at_revision,
            (select sum(revision)::bigint from change_counter) as "revision!",
            (select count(*) from (select from client limit $1::bigint + 1) partners) as "partners!"
        from applied_configuration
        "#,
        PARTNERS_MAX,
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(applied) = applied else {
        show_drift(core, 0);
        return Ok(());
    };
    let mut drift = applied.drift;
    let is_countable = applied.partners <= PARTNERS_MAX;
    if !is_countable {
        tracing::warn!("beside more than {PARTNERS_MAX} partners drift is not counted");
    }
    if is_countable && applied.counted_at_revision != applied.revision {
        let wanted: Members = serde_json::from_value(applied.members).unwrap_or_default();
        drift = count(&wanted, &members(Configuration::stored(&mut tx).await?));
        sqlx::query!(
            "update applied_configuration set drift = $1, counted_at_revision = $2 \
             where members = $3",
            drift,
            applied.revision,
            json!(wanted),
        )
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
    }
    show_drift(core, drift);
    Ok(())
}

fn show_drift(core: &Core, drift: i32) {
    core.measured(Measurement::Drift);
    core.metrics.configuration_drift.with_label_values::<&str>(&[]).set(drift.into());
}

/// The configuration's members, by subject and path.
fn members(configuration: Configuration) -> Members {
    let Configuration { partners, pairs, payment_methods, prices, routes } = configuration;
    let sections = [
        ("partners", partners),
        ("pairs", pairs),
        ("paymentMethods", payment_methods),
        ("prices", prices),
    ];
    let subjects = sections.into_iter().flat_map(|(section, subjects)| {
        let at =
            move |(key, members)| (format!("{section}.{key}"), leaves(&Value::Object(members)));
        subjects.into_iter().map(at)
    });
    let routes = routes.map(|routes| ("routes".to_owned(), leaves(&json!({ "routes": routes }))));
    subjects.chain(routes).collect()
}

fn count(wanted: &Members, stored: &Members) -> i32 {
    let differ = wanted.iter().flat_map(|(subject, members)| {
        let stored = stored.get(subject);
        let is_other = move |(member, value): &(&String, &Value)| {
            stored.and_then(|stored| stored.get(*member)) != Some(*value)
        };
        members.iter().filter(is_other)
    });
    i32::try_from(differ.count()).unwrap_or(i32::MAX)
}
