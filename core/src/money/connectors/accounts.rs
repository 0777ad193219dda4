//! Accounts of users that connectors verify: cards at their processor, accounts at the wallet
//! provider.

use rampart_types::{ClientId, UserId};
use serde_json::{Value, json};
use uuid::Uuid;

use super::commands::{Command, CommandKind, Target};
use super::payouts::command_payouts_of;
use crate::Core;
use crate::platform::crypto::{Secret, sha256};
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::tenancy::tenants::Tenant;
use crate::trading::catalogue::Direction;
use crate::users::accounts::{
    self, AccountDetails, AccountType, HOLDER_CHARS_MAX, IDENTIFIER_BYTES_MAX, NewAccount,
    OpenOutcome, PaymentAccount,
};

/// Has the card of a session with the processor named: `{accountIdentifier, token}`.
pub(crate) fn register_card(
    tenant: &Tenant,
    user: UserId,
    (session, holder, currency): (&str, &str, &str),
) -> Command {
    Command {
        client: tenant.id,
        order: None,
        user: Some(user),
        kind: CommandKind::CardVerify,
        idempotency_key: format!("card-session/{user}/{}", hex::encode(sha256(session))),
        target: card_route(),
        body: json!({
            "partner": &*tenant.slug,
            "userId": user,
            "sessionIdentifier": session,
            "cardHolderName": holder,
            "currency": currency,
        }),
    }
}

/// Has a card verified. One that was refused may be verified again, for the `attempt`th time.
pub(crate) fn verify_card(
    tenant: &Tenant,
    user: UserId,
    (account, attempt): (&PaymentAccount, i64),
) -> Command {
    Command {
        client: tenant.id,
        order: None,
        user: Some(user),
        kind: CommandKind::CardVerify,
        idempotency_key: format!("card-verify/{}/{attempt}", account.id),
        target: card_route(),
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
pub(crate) fn verify_wallet_account(tenant: &Tenant, user: UserId, token: &Secret) -> Command {
    let digest = hex::encode(sha256(token.expose()));
    Command {
        client: tenant.id,
        order: None,
        user: Some(user),
        kind: CommandKind::WalletProviderVerify,
        idempotency_key: format!("wallet-account/{user}/{digest}"),
        target: Target::Capability,
        body: json!({
            "partner": &*tenant.slug,
            "userId": user,
            "accessToken": token.expose(),
        }),
    }
}

fn card_route() -> Target {
    Target::Method { direction: Direction::In, method: AccountType::CreditCard.as_str().to_owned() }
}

/// Verifications of a user's cards that were refused so far.
///
/// # Errors
/// When the database cannot be read.
pub(crate) async fn refused_cards(
    conn: &mut Connection,
    (client, user): (ClientId, UserId),
) -> Result<i64> {
    let refused = sqlx::query_scalar!(
        r#"
        select count(*) as "refused!" from command
        where client_id = $1 and user_id = $2 and kind = 'card.verify' and state = 'rejected'
        "#,
        client.uuid(),
        user.uuid(),
    )
    .fetch_one(conn)
    .await?;
    Ok(refused)
}

/// Opens or verifies the account that a command was about, in the transaction that ends it, and
/// commands what waited for it.
///
/// # Errors
/// When the database cannot be written.
pub(super) async fn verified(
    conn: &mut Connection,
    core: &Core,
    (client, user, kind): (ClientId, UserId, CommandKind),
    (body, result): (&Value, &Value),
) -> Result<()> {
    let owner = (client, user);
    if let Some(account) = body["accountId"].as_str().and_then(|id| id.parse::<Uuid>().ok()) {
        accounts::verify(conn, core, owner, account).await?;
        return command_payouts_of(conn, core, owner).await;
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
    if let OpenOutcome::Existing(known) = accounts::open(conn, core, owner, account).await?
        && !is_card
        && !known.disabled
    {
        accounts::verify(conn, core, owner, known.id).await?;
    }
    command_payouts_of(conn, core, owner).await
}
