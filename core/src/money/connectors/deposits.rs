//! The pool of deposit addresses: filled ahead by commands, emptied by sales.

mod made;

use std::collections::BTreeSet;

use rampart_types::{
    Chain, ClientId, CurrencyCode, DestinationTag, OrderKey, TagKind, WalletAddress,
};
use serde_json::json;

pub(super) use self::made::store;
use super::commands::{Command, CommandKind, Target, enqueue};
use super::sandbox::timing as sandbox;
use crate::Core;
use crate::platform::db::Connection;
use crate::platform::error::{Error, Result};
use crate::platform::metrics::Measurement;
use crate::tenancy::house::house;
use crate::trading::catalogue::{Catalogue, Direction};
use crate::trading::orders::column::id;
use crate::trading::sandbox::deposit_address;

/// Most addresses of one command, and of one result.
const ADDRESSES_MAX: usize = 1_000;
/// Unpaid sales from which a partner leaves the last addresses of a pool to others.
const UNPAID_SALES: i64 = 16;
/// Those last ones: a part of `connectors.deposit_addresses_min`.
const RESERVED_PART: u32 = 4;
/// The worker in metrics and logs.
const SWEEP: &str = "deposit addresses";

/// The source of a sale's deposit address.
#[derive(Debug)]
pub(crate) enum DepositSource {
    /// The pool of a connector.
    Pool(AddressPool),
    /// The sandbox: it has made the address for one sale, and no pool has it.
    Made(DepositAddress),
}

impl DepositSource {
    /// An address of the sandbox for one sale: it makes each as it is wanted.
    ///
    /// # Errors
    /// When it is not valid on its chain, which would be our fault.
    pub(crate) fn of_sandbox(
        core: &Core,
        sale: OrderKey,
        asset: &str,
        chain: Chain,
    ) -> Result<Self> {
        let (address, tag) = deposit_address::derive(core, sale, chain)?;
        Ok(Self::Made(DepositAddress {
            asset: asset.to_owned(),
            address: address.as_str().to_owned(),
            tag: tag.map(|tag| tag.to_string()).unwrap_or_default(),
        }))
    }

    /// Takes an address for a sale in the caller's transaction: the oldest one that no other sale
    /// is taking. `None` when the pool is empty, the partner leaves the rest of it to others, or another
    /// sale has the sandbox's address.
    ///
    /// # Errors
    /// The database's.
    pub(crate) async fn take(
        &self,
        conn: &mut Connection,
        sale: OrderKey,
    ) -> Result<Option<DepositAddress>, sqlx::Error> {
        match self {
            Self::Pool(pool) => pool.take(conn, sale).await,
            Self::Made(made) => {
                let added = sqlx::query!(
                    "insert into deposit_address (connector, asset, address, tag, added_at, \
                         taken_by, taken_for) \
                     values ($1, $2, $3, $4, now(), $5, $6) on conflict do nothing",
                    sandbox::NAME,
                    made.asset,
                    made.address,
                    made.tag,
                    sale.client.uuid(),
                    sale.order.number(),
                )
                .execute(conn)
                .await?;
                Ok((added.rows_affected() == 1).then(|| made.clone()))
            }
        }
    }
}

/// A statement that takes the oldest address of a pool. Its lock passes over those that others are
/// taking, or waits for them.
macro_rules! take_oldest {
    ($lock:literal, $($argument:expr),+) => {
        sqlx::query_as!(
            DepositAddress,
            "with free as materialized ( \
                 select connector, asset, address, tag from deposit_address \
                 where connector = $1 and asset = $2 and taken_by is null \
                 order by added_at limit 1 " + $lock + ") \
             update deposit_address d set taken_by = $3, taken_for = $4 \
             from free f \
             where d.connector = f.connector and d.asset = f.asset and d.address = f.address \
                 and d.tag = f.tag \
             returning d.asset as \"asset!\", d.address as \"address!\", d.tag as \"tag!\"",
            $($argument),+
        )
    };
}

/// The deposit addresses of a connector for one currency.
#[derive(Debug)]
pub(crate) struct AddressPool {
    /// Name of the connector.
    pub(crate) connector: String,
    /// Code of the currency.
    pub(crate) asset: String,
    /// Last addresses, for partners with few unpaid sales.
    reserved: i64,
}

impl AddressPool {
    /// The pool of this connector for this currency.
    pub(crate) fn new(core: &Core, connector: &str, asset: String) -> Self {
        let reserved = core.settings.connectors.deposit_addresses_min / RESERVED_PART;
        Self { connector: connector.to_owned(), asset, reserved: reserved.into() }
    }

    /// True if the pool is low and this partner has many unpaid sales: an address is never given back,
    /// so they would take those of every other partner.
    async fn is_reserved(
        &self,
        conn: &mut Connection,
        client: ClientId,
    ) -> Result<bool, sqlx::Error> {
        sqlx::query_scalar!(
            r#"
            select (select count(*) from (select from sell_order
                    where client_id = $1 and status = 'pending' limit $2) unpaid) >= $2
                and (select count(*) from (select from deposit_address
                    where connector = $3 and asset = $4 and taken_by is null limit $5::bigint + 1) free)
                    <= $5 as "is_reserved!"
            "#,
            client.uuid(),
            UNPAID_SALES,
            self.connector,
            self.asset,
            self.reserved,
        )
        .fetch_one(conn)
        .await
    }

    /// Takes the oldest address that no other sale is taking. While others are taking the last ones
    /// it waits, and takes one that is given up, as by a quote that two requests confirm at once.
    async fn take(
        &self,
        conn: &mut Connection,
        sale: OrderKey,
    ) -> Result<Option<DepositAddress>, sqlx::Error> {
        if self.is_reserved(conn, sale.client).await? {
            return Ok(None);
        }
        let (client, order) = (sale.client.uuid(), sale.order.number());
        let free =
            take_oldest!("for update skip locked", self.connector, self.asset, client, order)
                .fetch_optional(&mut *conn)
                .await?;
        if free.is_some() {
            return Ok(free);
        }
        take_oldest!("for update", self.connector, self.asset, client, order)
            .fetch_optional(conn)
            .await
    }
}

/// An address that a sale takes.
#[derive(Clone, Debug)]
pub(crate) struct DepositAddress {
    asset: String,
    address: String,
    tag: String,
}

impl DepositAddress {
    /// Address and tag as values of the chain.
    ///
    /// # Errors
    /// When they are not valid there, which was checked before they were stored.
    pub(crate) fn parse(
        &self,
        catalogue: &Catalogue,
    ) -> Result<(WalletAddress, Option<DestinationTag>)> {
        parse(catalogue, &self.asset, &self.address, &self.tag)
            .ok_or_else(|| Error::invariant("read a deposit address"))
    }
}

fn parse(
    catalogue: &Catalogue,
    asset: &str,
    address: &str,
    tag: &str,
) -> Option<(WalletAddress, Option<DestinationTag>)> {
    let code: CurrencyCode = asset.parse().ok()?;
    let chain = catalogue.currencies.get(&code)?.crypto.as_ref()?.chain;
    let address = WalletAddress::parse(chain, address).ok()?;
    if tag.is_empty() {
        return Some((address, None));
    }
    let kind = chain.tag_kind();
    if matches!(kind, TagKind::None) {
        return None;
    }
    Some((address, Some(DestinationTag::parse(kind, tag).ok()?)))
}

/// The sale that an address was given to, in whichever case a chain's programs spell it, and with
/// whichever zeros before its tag. Of sales of several assets with one address, as accounts of a chain
/// may have it, that of the asset which came.
///
/// # Errors
/// When the database cannot be read.
pub(super) async fn sale_of(
    conn: &mut Connection,
    core: &Core,
    connector: &str,
    address: &str,
    tag: &str,
    asset: Option<&str>,
) -> Result<Option<OrderKey>> {
    let snapshot = core.snapshots.current();
    let parsed = asset.and_then(|asset| {
        let parse = |tag| parse(&snapshot.catalogue, asset, address, tag);
        parse(tag).or_else(|| parse(""))
    });
    let (spellings, plain_tag) = match parsed {
        Some((address, tag)) => (address.spellings(), tag.map(|tag| tag.to_string())),
        None => (vec![address.to_owned()], None),
    };
    // An edge of the version before has stored it as its connector has spelled it.
    let tags: Vec<String> = plain_tag.into_iter().chain([tag.to_owned()]).collect();
    let found = sqlx::query!(
        r#"
        select taken_by as "taken_by!", taken_for as "taken_for!" from deposit_address
        where connector = $1 and address = any ($2) and tag = any ($3) and taken_by is not null
        order by asset = $4 desc, added_at limit 1
        "#,
        connector,
        &spellings,
        &tags,
        asset,
    )
    .fetch_optional(conn)
    .await?;
    let Some(row) = found else { return Ok(None) };
    Ok(Some(OrderKey { client: row.taken_by.into(), order: id(row.taken_for)? }))
}

impl Core {
    /// Commands new deposit addresses where a pool runs low: of each connector and asset that coins
    /// are routed to. Several edges may run it at once: one of them commands. A pool whose last
    /// command was refused, or brought no address, gets another one in the next minute.
    ///
    /// # Errors
    /// When the database cannot be used; the next run continues.
    pub async fn fill_deposit_pools(&self) -> Result<()> {
        let snapshot = self.snapshots.current();
        let pools: BTreeSet<(&str, &str)> =
            snapshot.catalogue.routes.assets(Direction::In).collect();
        let min = i64::from(self.settings.connectors.deposit_addresses_min);
        if min == 0 {
            return Ok(());
        }
        let mut counted = Vec::with_capacity(pools.len());
        for (connector, asset) in pools {
            let filling = async {
                let pool = sqlx::query!(
                    r#"
                    select (select count(*) from (select from deposit_address
                            where connector = $1 and asset = $2 and taken_by is null limit $3) f
                        ) as "free!",
                        -- the last one: no other is commanded while one is open
                        coalesce((select state = 'open' from command
                            where connector = $1 and asset = $2 and kind = 'deposit.address'
                            order by created_at desc, command_id desc limit 1), false)
                            as "waiting!"
                    "#,
                    connector,
                    asset,
                    min,
                )
                .fetch_one(&self.db)
                .await?;
                counted.push((connector, asset, pool.free));
                if pool.free < min && !pool.waiting {
                    self.command_addresses(connector, asset, min - pool.free).await?;
                }
                Ok::<_, Error>(())
            };
            if let Err(error) = filling.await {
                let pool = format!("{connector}/{asset}");
                self.metrics.row_failed(SWEEP, house().uuid(), &pool, error)?;
            }
        }
        self.measured(Measurement::DepositAddresses);
        // At once: whoever scrapes in between would miss a pool.
        let shown = &self.metrics.deposit_addresses_free;
        shown.reset();
        for (connector, asset, free) in counted {
            shown.with_label_values(&[connector, asset]).set(free);
        }
        Ok(())
    }

    async fn command_addresses(&self, connector: &str, asset: &str, count: i64) -> Result<()> {
        let count = usize::try_from(count).unwrap_or(ADDRESSES_MAX).min(ADDRESSES_MAX);
        let filled_by = sqlx::query_scalar!(
            "select c.command_id from ( \
                 select command_id, state, created_at from command \
                 where connector = $1 and asset = $2 and kind = 'deposit.address' \
                 order by created_at desc, command_id desc limit 1) c \
             where c.state = 'done' and exists (select from deposit_address d \
                 where d.connector = $1 and d.asset = $2 and d.added_at >= c.created_at)",
            connector,
            asset,
        )
        .fetch_optional(&self.db)
        .await?;
        // Named after what has filled the pool: once that is used up, the next one is another.
        // Where nothing has, as a connector that answers with no usable address, one a minute is
        // enough.
        let after = match filled_by {
            Some(command) => command.to_string(),
            None => (self.clock.unix_seconds() / 60).to_string(),
        };
        let command = Command {
            client: house(),
            order: None,
            user: None,
            kind: CommandKind::DepositAddress,
            idempotency_key: format!("deposit/{connector}/{asset}/{after}"),
            body: json!({ "asset": asset, "count": count }),
            target: Target::Pool { connector: connector.to_owned(), asset: asset.to_owned() },
        };
        let mut tx = self.db.begin().await?;
        let is_new = enqueue(&mut tx, self, command).await?;
        tx.commit().await?;
        if is_new {
            tracing::info!(connector, asset, count, "a pool of deposit addresses runs low");
        }
        Ok(())
    }
}
