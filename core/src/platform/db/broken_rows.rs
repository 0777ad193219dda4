//! Rows that cannot be read: they are left out, and cost nobody but their owner.

use std::fmt::Display;
use std::panic::AssertUnwindSafe;

use futures::FutureExt as _;
use rampart_types::ClientId;
use sqlx::Error;

/// A row that was left out because it cannot be read.
#[derive(Clone, Debug)]
pub struct BrokenRow {
    /// Its table, one of [`BrokenRow::TABLES`].
    pub table: &'static str,
    /// The tenant that it belongs to; `None` for a row of the market.
    pub client: Option<ClientId>,
}

impl BrokenRow {
    /// The tables whose rows an edge keeps in memory.
    pub(crate) const TABLES: [&'static str; 11] = [
        "api_key",
        "client",
        "client_secret",
        "currency",
        "currency_pair",
        "payment_method",
        "payment_method_preference",
        "policy_version",
        "price",
        "tenant_key",
        "verification_key",
    ];

    /// Logs a tenant's row. `key` names it beside its tenant, `reason` has none of its secrets.
    pub(crate) fn of_tenant(
        table: &'static str,
        client: impl Into<ClientId>,
        key: &dyn Display,
        reason: &dyn Display,
    ) -> Self {
        let client = client.into();
        tracing::error!(table, %client, %key, error = %reason, "a row cannot be read and is left out");
        Self { table, client: Some(client) }
    }

    /// Logs a row of the market.
    pub(crate) fn of_market(table: &'static str, key: &dyn Display, reason: &dyn Display) -> Self {
        tracing::error!(table, %key, error = %reason, "a row cannot be read and is left out");
        Self { table, client: None }
    }
}

/// Rows that could be read, and the keys of the others with the reason.
pub(crate) struct Readable<K, R> {
    /// In the order of the keys.
    pub(crate) rows: Vec<R>,
    /// Keys for which `read` cannot decode a row.
    pub(crate) broken: Vec<(K, String)>,
}

/// Reads the rows of all keys. Only if one of them cannot be decoded, `keys` is asked and the keys
/// are halved until those of such rows stand alone: `read` runs about 2 log n times for each.
pub(crate) async fn readable<K, R, Reading>(
    read: impl Fn(Option<Vec<K>>) -> Reading,
    keys: impl Future<Output = Result<Vec<K>, Error>>,
) -> Result<Readable<K, R>, Error>
where
    K: Clone,
    Reading: Future<Output = Result<Vec<R>, Error>>,
{
    let mut readable = Readable { rows: Vec::new(), broken: Vec::new() };
    let Err(reason) = decoded(read(None)).await?.map(|rows| readable.rows = rows) else {
        return Ok(readable);
    };
    tracing::warn!(reason, "a row cannot be read: it is searched for");
    let mut parts = vec![keys.await?];
    while let Some(mut part) = parts.pop() {
        if part.is_empty() {
            continue;
        }
        match decoded(read(Some(part.clone()))).await? {
            Ok(rows) => readable.rows.extend(rows),
            Err(reason) if part.len() == 1 => {
                readable.broken.extend(part.pop().map(|key| (key, reason)));
            }
            Err(_) => {
                let rest = part.split_off(part.len() / 2);
                parts.extend([rest, part]);
            }
        }
    }
    Ok(readable)
}

/// The rows, or the reason they cannot be decoded.
async fn decoded<R>(
    reading: impl Future<Output = Result<Vec<R>, Error>>,
) -> Result<Result<Vec<R>, String>, Error> {
    match AssertUnwindSafe(reading).catch_unwind().await {
        Ok(Ok(rows)) => Ok(Ok(rows)),
        Ok(Err(error @ (Error::ColumnDecode { .. } | Error::Decode(_)))) => {
            Ok(Err(error.to_string()))
        }
        Ok(Err(error)) => Err(error),
        // The panic hook has logged the cause: a time such as 'infinity', which no type holds.
        Err(_) => Ok(Err("a value is out of bounds".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Reads numbers below 1000; those in `bad` cannot be decoded.
    async fn read(bad: &[u32], part: Option<Vec<u32>>) -> Result<Vec<u32>, Error> {
        let part = part.unwrap_or_else(|| (0..1_000).collect());
        if part.iter().any(|number| bad.contains(number)) {
            return Err(Error::Decode("bad".into()));
        }
        assert!(!part.contains(&666), "out of bounds");
        Ok(part)
    }

    #[tokio::test]
    async fn what_can_be_read_is_read_once() {
        let keys = async { unreachable!("nobody needs them") };
        let all = readable(|part| read(&[], part.or(Some(vec![1, 2]))), keys).await.unwrap();
        assert_eq!((all.rows, all.broken.len()), (vec![1, 2], 0));
    }

    #[tokio::test]
    async fn rows_that_cannot_be_read_are_found_in_few_steps_and_the_rest_keeps_its_order() {
        let steps = Cell::new(0);
        let reading = |part| {
            steps.set(steps.get() + 1);
            read(&[0, 500], part)
        };
        let found = readable(reading, async { Ok((0..1_000).collect()) }).await.unwrap();
        let broken: Vec<_> = found.broken.iter().map(|(key, _)| *key).collect();
        assert_eq!(broken, [0, 500, 666], "a panic is no worse");
        let rest: Vec<_> = (0..1_000).filter(|number| !broken.contains(number)).collect();
        assert_eq!(found.rows, rest);
        assert!(steps.get() < 70, "{} steps", steps.get());
    }

    #[tokio::test]
    async fn a_database_that_fails_is_no_broken_row() {
        let reading = |_: Option<Vec<u32>>| async { Err::<Vec<u32>, _>(Error::PoolTimedOut) };
        assert!(readable(reading, async { Ok(vec![1]) }).await.is_err());
    }
}
