//! Accounts of users that connectors verify: cards at their processor, accounts at the wallet
//! provider.

use rampart_types::{UserId, UserKey};
use serde_json::{Value, json};
use uuid::Uuid;

use super::commands::{Command, CommandKind, Target};
use super::finished::Finished;
use super::payouts::command_payouts_and_transfers;
use crate::Core;
use crate::auth::caller::Client;
use crate::platform::crypto::{Secret, sha256};
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::tenancy::tenants::Tenant;
use crate::trading::catalogue::{Direction, Leg};
use crate::users::accounts::{
    self, AccountDetails, AccountType, CardSession, HOLDER_CHARS_MAX, IDENTIFIER_BYTES_MAX,
    NewAccount, OpenOutcome, PaymentAccount,
};

/// The reason of a processor for a card that it cannot verify at once.
pub(crate) const NOT_INSTANT: &str = "not-instant";

/// Has the card of a session with the processor named: `{accountIdentifier, token}`.
///
/// # Errors
/// Without entropy.
pub(crate) fn register_card(
    core: &Core,
    client: &Client,
    user: UserId,
    session: &CardSession,
) -> Result<Command> {
    let tenant = &client.tenant;
    let target = card_route(client);
    let key = format!("card-session/{user}/{}", hex::encode(sha256(&session.identifier)));
    Ok(Command {
        client: tenant.id,
        order: None,
        user: Some(user),
        kind: CommandKind::CardVerify,
        idempotency_key: repeatable(core, key, &target)?,
        target,
        body: json!({
            "partner": &*tenant.slug,
            "userId": user,
            "sessionIdentifier": session.identifier,
            "cardHolderName": session.holder,
            "currency": session.currency.as_str(),
        }),
    })
}

/// Has a card verified. One that is not verified may be verified again once a verification has ended,
/// for the `attempt`th time.
pub(crate) fn verify_card(
    client: &Client,
    user: UserId,
    account: &PaymentAccount,
    attempt: i64,
) -> Command {
    let tenant = &client.tenant;
    Command {
        client: tenant.id,
        order: None,
        user: Some(user),
        kind: CommandKind::CardVerify,
        idempotency_key: format!("card-verify/{}/{attempt}", account.id),
        target: card_route(client),
        body: json!({
            "partner": &*tenant.slug,
            "userId": user,
            "accountId": account.id,
            "accountIdentifier": account.details.identifier,
            "cardHolderName": account.details.holder,
            "token": account.details.token,
        }),
    }
}

/// Has the wallet provider name the account of a token: `{accountIdentifier, accountHolderName?}`.
///
/// # Errors
/// Without entropy.
pub(crate) fn verify_wallet_account(
    core: &Core,
    tenant: &Tenant,
    user: UserId,
    token: &Secret,
) -> Result<Command> {
    let target = Target::for_checks(tenant);
    let key = format!("wallet-account/{user}/{}", hex::encode(sha256(token.expose())));
    Ok(Command {
        client: tenant.id,
        order: None,
        user: Some(user),
        kind: CommandKind::WalletProviderVerify,
        idempotency_key: repeatable(core, key, &target)?,
        target,
        body: json!({
            "partner": &*tenant.slug,
            "userId": user,
            "accessToken": token.expose(),
        }),
    })
}

/// The processor of the client's cards: that of their route, or the sandbox for a test client without
/// one.
fn card_route(client: &Client) -> Target {
    let method = AccountType::CreditCard.as_str();
    if is_simulated(client) {
        return Target::sandbox();
    }
    Target::Method { direction: Direction::In, method: method.to_owned() }
}

/// True if the sandbox is the processor of the client's cards.
pub(crate) fn is_simulated(client: &Client) -> bool {
    let (partner, is_test) = (&client.tenant.slug, client.tenant.is_test());
    let cards = Leg::Method(AccountType::CreditCard.as_str());
    let route = client.catalogue.routes.connector(partner, is_test, Direction::In, cards);
    is_test && route.is_none()
}

/// The name of an effect; of the sandbox, whose sessions and tokens are good again and again, another
/// one each time.
fn repeatable(core: &Core, key: String, target: &Target) -> Result<String> {
    Ok(match target {
        Target::Connector(_) => format!("{key}/{}", core.clock.uuid()?),
        _ => key,
    })
}

/// Verifications of a user's cards that have ended so far. One that was done counts too: the account may
/// have been disabled by then, or be unverified again.
///
/// # Errors
/// When the database cannot be read.
pub(crate) async fn ended_verifications(
    conn: &mut Connection,
    UserKey { client, user }: UserKey,
) -> Result<i64> {
    let ended = sqlx::query_scalar!(
        r#"
        select count(*) as "ended!" from command
        where client_id = $1 and user_id = $2 and kind = 'card.verify' and state <> 'open'
        "#,
        client.uuid(),
        user.uuid(),
    )
    .fetch_one(conn)
    .await?;
    Ok(ended)
}

/// Opens or verifies the account that a command was about, in the transaction that ends it, and
/// commands what waited for it.
///
/// # Errors
/// When the database cannot be written.
pub(super) async fn verified(
    conn: &mut Connection,
    core: &Core,
    finished: &Finished,
    user: UserId,
    kind: CommandKind,
) -> Result<()> {
    let Finished { client, result, .. } = finished;
    let (body, key) = (finished.body(core)?, UserKey { client: *client, user });
    if body["accountId"].is_string() {
        if let Some(account) = as_asked_for(conn, core, key, &body).await? {
            accounts::verify(conn, core, key, account).await?;
        }
        return command_payouts_and_transfers(conn, core, key).await;
    }
    let is_card = kind == CommandKind::CardVerify;
    let identifier = result["accountIdentifier"].as_str().filter(|text| {
        !text.is_empty() && text.len() <= IDENTIFIER_BYTES_MAX && !text.contains(char::is_control)
    });
    let Some(identifier) = identifier else {
        tracing::warn!(%client, "a verification names no account");
        return Ok(());
    };
    let holder = if is_card { &body["cardHolderName"] } else { &result["accountHolderName"] };
    let holder = holder.as_str().unwrap_or_default().chars().take(HOLDER_CHARS_MAX).collect();
    let account = NewAccount {
        kind: if is_card { AccountType::CreditCard } else { AccountType::Walletpay },
        details: AccountDetails {
            identifier: identifier.to_owned(),
            holder,
            token: result["token"].as_str().map(str::to_owned),
        },
        is_stored_card: is_card,
        verified: !is_card,
    };
    match accounts::open(conn, core, key, account).await? {
        OpenOutcome::Existing(known) if !is_card && !known.disabled => {
            accounts::verify(conn, core, key, known.id).await?;
        }
        OpenOutcome::Created(account) if result["disabled"] == true => {
            accounts::disable(conn, core, key, account.id).await?;
        }
        _ => {}
    }
    command_payouts_and_transfers(conn, core, key).await
}

/// The account of a verification, unless the user has named another holder or card session since: the
/// processor was asked about what was known then.
async fn as_asked_for(
    conn: &mut Connection,
    core: &Core,
    key: UserKey,
    body: &Value,
) -> Result<Option<Uuid>> {
    let identifier = body["accountIdentifier"].as_str().unwrap_or_default();
    let account = accounts::find(conn, core, key, identifier).await?;
    let is_same = |account: &PaymentAccount| {
        body["accountId"].as_str().and_then(|id| id.parse::<Uuid>().ok()) == Some(account.id)
            && body["cardHolderName"].as_str() == Some(account.details.holder.as_str())
            && body["token"].as_str() == account.details.token.as_deref()
    };
    Ok(account.filter(is_same).map(|account| account.id))
}
