//! The wallets of a user: those that its purchases were delivered to, and those of its savings plans.

use schemars::JsonSchema;
use serde::Serialize;
use uuid::{Builder, Uuid};

use crate::Core;
use crate::platform::crypto::sha256;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::trading::orders::row::{currency, tag};
use rampart_types::{CurrencyCode, DestinationTag, UserId, UserKey};

/// Most wallets that are listed, those used last.
const WALLETS_MAX: i64 = 100;
/// Most orders that are looked at, the newest.
const ORDERS_MAX: i64 = 1_000;

/// A wallet of a user.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EnabledWallet {
    /// The same for the same wallet of the user.
    id: Uuid,
    /// Code of the currency.
    currency: CurrencyCode,
    /// The address.
    address: String,
    /// Tag or memo that goes with the address.
    destination_tag: Option<DestinationTag>,
    /// The savings plan's name, or the end of the address.
    name: String,
}

/// The user's wallets, those used last first.
///
/// # Errors
/// When the database cannot be read.
pub(super) async fn list(
    conn: &mut Connection,
    core: &Core,
    key: UserKey,
) -> Result<Vec<EnabledWallet>> {
    let rows = sqlx::query!(
        r#"
        select currency as "currency!: CurrencyCode", address as "address!", tag,
            max(name) as name
        from (
            (select crypto_currency as currency, wallet_address as address,
                destination_tag as tag, null as name, created_at
            from buy_order where client_id = $1 and user_id = $2 and status = 'completed'
            order by created_at desc, order_id desc limit $3)
            union all
            select crypto_currency, wallet_address, destination_tag, name, created_at
            from dca_plan where client_id = $1 and user_id = $2 and not hidden
        ) as wallet
        group by currency, address, tag order by max(created_at) desc limit $4
        "#,
        key.client.uuid(),
        key.user.uuid(),
        ORDERS_MAX,
        WALLETS_MAX,
    )
    .fetch_all(conn)
    .await?;
    let catalogue = &core.snapshots.current().catalogue;
    let wallets = rows.into_iter().map(|row| {
        let currency = currency(catalogue, row.currency)?;
        let tag_text = row.tag.clone().unwrap_or_default();
        let id = id(key.user, &[currency.code().as_str(), &row.address, &tag_text]);
        let name = row.name.unwrap_or_else(|| label(currency.code(), &row.address));
        let destination_tag = tag(&currency, row.tag)?;
        let currency = currency.code();
        Ok(EnabledWallet { id, currency, address: row.address, destination_tag, name })
    });
    wallets.collect()
}

/// An id made of the wallet: there is no row that has one.
fn id(user: UserId, parts: &[&str]) -> Uuid {
    let hash = sha256(&format!("{user} {}", parts.join(" ")));
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    Builder::from_custom_bytes(bytes).into_uuid()
}

fn label(currency: CurrencyCode, address: &str) -> String {
    let end = address.char_indices().rev().nth(3).map_or(0, |(at, _)| at);
    format!("{currency} … {}", address.get(end..).unwrap_or_default())
}
