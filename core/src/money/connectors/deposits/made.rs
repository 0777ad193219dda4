//! Addresses that a connector has made, as its pool has them.

use serde_json::Value;

use super::{ADDRESSES_MAX, parse};
use crate::Core;
use crate::platform::db::Connection;
use crate::platform::error::Result;

/// Stores the addresses that a connector has made: those that are valid and new.
///
/// # Errors
/// When the database cannot be written.
pub(in crate::money::connectors) async fn store(
    conn: &mut Connection,
    core: &Core,
    connector: &str,
    asset: &str,
    result: &Value,
) -> Result<()> {
    let catalogue = &core.snapshots.current().catalogue;
    let (mut addresses, mut tags) = (Vec::new(), Vec::new());
    let (mut told_addresses, mut told_tags) = (Vec::new(), Vec::new());
    for entry in result.as_array().into_iter().flatten().take(ADDRESSES_MAX) {
        let told_tag = match &entry["tag"] {
            Value::String(tag) => tag.clone(),
            Value::Number(tag) => tag.to_string(),
            _ => String::new(),
        };
        let told_address = entry["address"].as_str().unwrap_or_default();
        match parse(catalogue, asset, told_address, &told_tag) {
            Some((address, tag)) => {
                // As its chain spells it, and as its sale has the tag: one in two spellings is one.
                addresses.push(address.spellings().pop().unwrap_or_default());
                tags.push(tag.map(|tag| tag.to_string()).unwrap_or_default());
                told_addresses.push(told_address.to_owned());
                told_tags.push(told_tag);
            }
            None => tracing::warn!(connector, asset, "a deposit address is not valid"),
        }
    }
    sqlx::query!(
        "insert into deposit_address (connector, asset, address, tag, added_at) \
         select $1, $2, a.address, a.tag, now() \
         from unnest($3::text[], $4::text[], $5::text[], $6::text[]) \
             a (address, tag, told_address, told_tag) \
         where not exists (select from deposit_address d \
             where d.connector = $1 and d.asset = $2 and d.address = a.told_address \
                 and d.tag = a.told_tag) \
         on conflict do nothing",
        connector,
        asset,
        &addresses,
        &tags,
        // An edge of the version before has stored it so.
        &told_addresses,
        &told_tags,
    )
    .execute(conn)
    .await?;
    Ok(())
}
