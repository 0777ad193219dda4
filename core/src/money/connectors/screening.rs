//! Screening of wallets and persons. A connector decides, or an operator where it cannot; until
//! one of them has cleared it, no coins leave.
//!
//! A wallet is screened at the confirm, a person once its name is known, and again when that or the
//! country changes. Without a connector that screens there is nothing to wait for.

use rampart_types::{ClientId, OrderId, OrderKey, UserId, UserKey};
use serde_json::json;
use uuid::Uuid;

use super::commands::{Command, CommandKind, SealedCommand, Target};
use super::finished::Finished;
use super::payouts::{command_payout, command_payouts_and_transfers};
use super::sandbox::magic;
use crate::Core;
use crate::platform::db::Connection;
use crate::platform::error::{Error, Result};
use crate::tenancy::tenants::Tenant;
use crate::trading::orders::column::id;
use crate::users::account::Account;

/// The result of a screening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Nothing is held against it.
    Clear,
    /// An operator has to look.
    Review,
    /// Coins must not leave.
    Block,
}

rampart_types::named_values! {
    pub Decision {
        Clear = "clear",
        Review = "review",
        Block = "block",
    }
}

/// A wallet to be screened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wallet<'a> {
    /// Code of the currency.
    pub(crate) asset: &'a str,
    pub(crate) address: &'a str,
    /// The destination tag.
    pub(crate) tag: Option<&'a str>,
}

/// A person to be screened.
#[derive(Debug)]
pub(crate) struct Person<'a> {
    pub(crate) user: UserId,
    pub(crate) first_name: Option<&'a str>,
    pub(crate) last_name: &'a str,
    pub(crate) date_of_birth: Option<chrono::NaiveDate>,
    pub(crate) country: Option<&'a str>,
}

impl<'a> Person<'a> {
    /// The person that a user says to be; `None` before the last name is known.
    pub(crate) fn of(account: &'a Account) -> Option<Self> {
        let personal = &account.personal;
        Some(Self {
            user: account.user,
            first_name: personal.first_name.as_deref(),
            last_name: personal.last_name.as_deref()?,
            date_of_birth: personal.date_of_birth,
            country: account.country.as_deref(),
        })
    }
}

/// The screening of an order's wallet, ready to be written by the statement that writes the order.
#[derive(Clone, Debug)]
pub(crate) struct SealedScreening {
    pub(crate) id: Uuid,
    pub(crate) command: SealedCommand,
    /// The sandbox's, made as it is commanded.
    pub(crate) decision: Option<Decision>,
}

impl SealedScreening {
    /// The screening of an order's wallet; `None` for one of a test client that the sandbox clears at
    /// once, by the order's reference.
    ///
    /// # Errors
    /// Without entropy.
    pub(crate) fn of_wallet(
        core: &Core,
        tenant: &Tenant,
        order: OrderId,
        reference: Option<&str>,
        wallet: Wallet<'_>,
    ) -> Result<Option<Self>> {
        let client = tenant.id;
        let decision = tenant.is_test().then(|| magic::wallet(reference));
        if decision == Some(Decision::Clear) {
            return Ok(None);
        }
        let command = Command {
            client,
            // A payment need not wait for it.
            order: None,
            user: None,
            kind: CommandKind::ScreeningCheck,
            idempotency_key: format!("screening/wallet/{order}"),
            target: Target::for_checks(tenant),
            body: json!({
                "subject": "wallet",
                "partner": &*tenant.slug,
                "orderId": order,
                "asset": wallet.asset,
                "address": wallet.address,
                "tag": wallet.tag,
            }),
        };
        let (id, command) = (core.clock.uuid()?, sealed(core, command, decision)?);
        Ok(Some(Self { id, command, decision }))
    }
}

/// Screens a person in the caller's transaction, which has stored a new name or country of it.
///
/// # Errors
/// Without entropy, or when the database cannot be written.
pub(crate) async fn screen_person(
    conn: &mut Connection,
    core: &Core,
    tenant: &Tenant,
    person: Person<'_>,
) -> Result<()> {
    let (client, id, user) = (tenant.id, core.clock.uuid()?, person.user);
    let decision = tenant.is_test().then(|| magic::person(person.last_name));
    if decision == Some(Decision::Clear) && !is_known(conn, UserKey { client, user }).await? {
        return Ok(());
    }
    let command = Command {
        client,
        order: None,
        user: Some(user),
        kind: CommandKind::ScreeningCheck,
        idempotency_key: format!("screening/person/{id}"),
        target: Target::for_checks(tenant),
        body: json!({
            "subject": "person",
            "partner": &*tenant.slug,
            "userId": user,
            "firstName": person.first_name,
            "lastName": person.last_name,
            "dateOfBirth": person.date_of_birth,
            "country": person.country,
        }),
    };
    let key = UserKey { client, user };
    insert_of_person(conn, key, id, &sealed(core, command, decision)?, decision).await?;
    Ok(())
}

/// Writes the screening of a person, and its command if a connector takes it. It takes the place of
/// an earlier one, unless an operator has blocked that: then the name and the country are
/// screened once it is cleared.
async fn insert_of_person(
    conn: &mut Connection,
    UserKey { client, user }: UserKey,
    id: Uuid,
    command: &SealedCommand,
    decision: Option<Decision>,
) -> Result<(), sqlx::Error> {
    // One statement writes both, for the user is locked meanwhile.
    let is_written = sqlx::query_scalar!(
        r#"
        with written as (
            insert into screening (client_id, screening_id, user_id, command_id, state, created_at)
            select $1::uuid, $2::uuid, $3::uuid, $4::uuid, coalesce($5::text, 'pending'),
                rampart_now()
            where $5::text is not null or (select connector_takes('screening.check'))
            -- as the index has it, which is of persons alone
            on conflict (client_id, user_id) where user_id is not null
            do update set command_id = excluded.command_id, state = excluded.state,
                decided_by = null, decision_reason = null, decided_at = null,
                created_at = excluded.created_at
            where not (screening.state = 'block' and screening.decided_by is not null)
            returning client_id, user_id, command_id
        ), commanded as (
            insert into command (client_id, command_id, kind, idempotency_key, connector,
                sealed_body, user_id, due_at, created_at, state, attempt, finished_at,
                sealed_result, traceparent, tracestate)
            select client_id, command_id, 'screening.check', $6::text, $7::text, $8::bytea, user_id,
                rampart_now() + $9::bigint * interval '1 millisecond', clock_timestamp(), $10::text,
                case when $10::text = 'done' then 1 else 0 end,
                case when $10::text = 'done' then now() end, $11::bytea, $12::text, $13::text
            from written
            on conflict on constraint command_idempotency_key_key do nothing
        )
        select exists (select from written) as "is_written!"
        "#,
        client.uuid(),
        id,
        user.uuid(),
        command.id(),
        decision.map(Decision::as_str),
        command.idempotency_key,
        command.connector.as_deref(),
        command.sealed_body.as_deref(),
        command.delay_ms,
        command.state,
        command.sealed_result.as_deref(),
        command.trace.traceparent.as_deref(),
        command.trace.tracestate.as_deref(),
    )
    .fetch_one(&mut *conn)
    .await?;
    if !is_written {
        // The block stands, and is no decision about the name and the country from then on.
        sqlx::query!(
            "update screening set decided_at = null \
             where client_id = $1 and user_id = $2 and state = 'block' \
                 and decided_by is not null",
            client.uuid(),
            user.uuid(),
        )
        .execute(conn)
        .await?;
    }
    Ok(())
}

/// Screens a user by the name and the country that it has now, one of which was taken while an
/// operator's block stood, in the transaction that has cleared that.
///
/// # Errors
/// Without entropy, or when the database cannot be used.
pub async fn screen_changed(conn: &mut Connection, core: &Core, key: UserKey) -> Result<()> {
    let Some(account) = Account::load(conn, core, key).await? else { return Ok(()) };
    let tenant = core.snapshots.current().tenants.get(&key.client).cloned();
    let tenant = tenant.ok_or_else(|| Error::invariant("find the tenant of a screening"))?;
    match Person::of(&account) {
        Some(person) => screen_person(conn, core, &tenant, person).await,
        None => Ok(()),
    }
}

/// Screens a live partner's user whom nobody but the sandbox has screened, while the partner was a test
/// client.
///
/// # Errors
/// Without entropy, or when the database cannot be written.
pub(super) async fn screen_anew(
    conn: &mut Connection,
    core: &Core,
    account: &Account,
) -> Result<()> {
    let tenant = core.snapshots.current().tenants.get(&account.client).cloned();
    let Some(tenant) = tenant.filter(|tenant| !tenant.is_test()) else { return Ok(()) };
    let Some(person) = Person::of(account) else { return Ok(()) };
    let is_screened = sqlx::query_scalar!(
        r#"
        select exists (select from screening s
            left join command c on c.client_id = s.client_id and c.command_id = s.command_id
            where s.client_id = $1 and s.user_id = $2 and c.connector is distinct from 'sandbox')
            as "screened!"
        "#,
        account.client.uuid(),
        account.user.uuid(),
    )
    .fetch_one(&mut *conn)
    .await?;
    if is_screened { Ok(()) } else { screen_person(conn, core, &tenant, person).await }
}

/// The command, with the sandbox's decision as its result.
fn sealed(core: &Core, command: Command, decision: Option<Decision>) -> Result<SealedCommand> {
    let command = command.seal(core)?;
    match decision {
        Some(decision) => {
            command.with_result(core, &json!({ "decision": decision.as_str(), "reasons": [] }))
        }
        None => Ok(command),
    }
}

/// True if the person was screened before.
async fn is_known(conn: &mut Connection, UserKey { client, user }: UserKey) -> Result<bool> {
    let known = sqlx::query_scalar!(
        r#"
        select exists (select from screening where client_id = $1 and user_id = $2) as "known!"
        "#,
        client.uuid(),
        user.uuid(),
    )
    .fetch_one(conn)
    .await?;
    Ok(known)
}

/// Writes what a connector has decided, in the transaction that ends its command. What is no
/// decision is reviewed. An operator's decision stays, and so does a later screening.
///
/// # Errors
/// When the database cannot be written, or the command's body cannot be opened.
pub(super) async fn decided(conn: &mut Connection, core: &Core, finished: &Finished) -> Result<()> {
    let result = finished.is_done.then_some(&finished.result);
    let decision = result.and_then(|result| Decision::from_name(result["decision"].as_str()?));
    let decision = decision.unwrap_or(Decision::Review);
    let (client, user) = (finished.client, finished.user.map(UserId::uuid));
    // The command of a wallet names its order in its body alone: a payment need not wait for it.
    let order = match user {
        Some(_) => None,
        None => finished.body(core)?["orderId"].as_i64(),
    };
    // Found by its subject, which is a key: an index by command would grow with every order.
    let subject = sqlx::query!(
        "update screening set state = $3, decided_at = rampart_now() \
         where client_id = $1 and (order_id = $4 or user_id = $5) and command_id = $2 \
             and state = 'pending' \
         returning order_id, user_id",
        client.uuid(),
        finished.command,
        decision.as_str(),
        order,
        user,
    )
    .fetch_optional(&mut *conn)
    .await?;
    let Some(subject) = subject else { return Ok(()) };
    if decision == Decision::Clear {
        cleared(conn, core, client, subject.order_id, subject.user_id).await?;
    }
    Ok(())
}

/// Commands, in the transaction that has cleared a screening, what waited for it alone.
///
/// # Errors
/// When the database cannot be used.
pub async fn cleared(
    conn: &mut Connection,
    core: &Core,
    client: ClientId,
    order: Option<i64>,
    user: Option<Uuid>,
) -> Result<()> {
    if let Some(number) = order {
        command_payout(conn, core, OrderKey { client, order: id(number)? }).await?;
    }
    match user {
        Some(user) => {
            let key = UserKey { client, user: user.into() };
            command_payouts_and_transfers(conn, core, key).await
        }
        None => Ok(()),
    }
}
