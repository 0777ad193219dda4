//! Preconditions of a new order other than the offer's terms.

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;

use super::account::NamedAccount;
use crate::Core;
use crate::auth::caller::Client;
use crate::platform::error::{Code, Refusal, Result, Violation};
use crate::tenancy::tenants::GuestOrders;
use crate::trading::catalogue::{Pair, PairStatus, PaymentMethodKind};
use crate::trading::checks::Hold;
use crate::trading::limits::limit_rules::remaining;
use crate::trading::limits::{self, Usage};
use crate::trading::quotes::{Quote, Side};
use crate::trading::routing::{self, Settlement};
use crate::users::accounts::PaymentAccount;
use rampart_types::{UserId, UserKey};

/// Detail of ER011 for the user's limit.
const LIMIT_REACHED: &str = "the user's limit for a day leaves less";
/// The same for the account's.
const ACCOUNT_LIMIT_REACHED: &str = "the account's limit for a day leaves less";
/// The same for the partner's, of an order without a user.
const GUEST_LIMIT_REACHED: &str = "an order without a user takes less";

/// The pair in maintenance, or closed because its price is doubtful or too old (ER008), the method
/// switched off since the quote (ER055), an amount beyond what one of them takes (ER011).
pub(crate) fn market(
    Client { tenant, catalogue, .. }: &Client,
    quote: &Quote,
    now: DateTime<Utc>,
    refusal: &mut Refusal,
) {
    let is_open = |pair: &Pair| {
        pair.buy.status == PairStatus::Enabled && routing::price(tenant, pair, now).is_some()
    };
    match catalogue.pairs.get(&quote.pair) {
        Some(pair) if is_open(pair) => {
            if !(pair.buy.min..=pair.buy.max).contains(&quote.fiat) {
                beyond(refusal, "pair", pair.buy.min, pair.buy.max);
            }
        }
        _ => refusal.add(Code::CurrencyInMaintenance, None),
    }
    match catalogue.payment_method(&quote.payment_method) {
        Some(method) if method.enabled => {
            if !method.accepts(quote.fiat) {
                beyond(refusal, "payment method", Decimal::ZERO, method.limit);
            }
        }
        _ => refusal.add(Code::PaymentMethodUnavailable, None),
    }
}

/// Money or coins that nobody moves for the tenant (ER055).
pub(crate) fn routes(client: &Client, quote: &Quote, refusal: &mut Refusal) {
    if routing::settlement_of(client, quote) == Settlement::Nobody {
        refusal.add(Code::PaymentMethodUnavailable, None);
    }
}

/// A user where the partner's agreement wants one (ER700), a guest's amount in the currency of limits
/// beyond what it allows (ER011), or without a rate to that currency (ER008).
pub(crate) fn guest(core: &Core, client: &Client, quote: &Quote, refusal: &mut Refusal) {
    match client.tenant.guest_orders {
        GuestOrders::Refused => refusal.add(Code::UserCredentialMissing, None),
        GuestOrders::UpTo(max) => match limits::limit_amount(core, &client.catalogue, quote) {
            None => no_limit_rate(refusal),
            Some(amount) if amount > max => {
                let (max, currency) = (max.normalize(), core.settings.limits.currency);
                let detail = format!("an order without a user takes at most {max} {currency}");
                refusal.add(Code::FiatAmountInvalid, Some(detail.into()));
            }
            Some(_) => {}
        },
        GuestOrders::Allowed => {}
    }
}

/// The violation of an order that the statement has refused though nothing else stands against it: of
/// its user's limit (ER011), or without a user of what its partner's agreement says now (ER700, ER011).
///
/// # Errors
/// When the database cannot be read.
pub(crate) async fn forbidden(
    core: &Core,
    client: &Client,
    user: Option<UserId>,
) -> Result<Violation> {
    let of_amount = |detail: &'static str| {
        let (code, detail) = (Code::FiatAmountInvalid, Some(detail.into()));
        Violation { code, field: None, detail }
    };
    if user.is_some() {
        return Ok(of_amount(LIMIT_REACHED));
    }
    // Zero is within any bound: it fits wherever the agreement allows such an order at all.
    let are_allowed = sqlx::query_scalar!(
        r#"select fits as "fits!" from guest_limits($1, 0)"#,
        client.id().uuid(),
    )
    .fetch_one(&core.db)
    .await?;
    Ok(match are_allowed {
        true => of_amount(GUEST_LIMIT_REACHED),
        false => Violation { code: Code::UserCredentialMissing, field: None, detail: None },
    })
}

/// Checks of the user that are open although the partner wants them done before the payment, or the
/// coins of a sale (ER011). Nobody asks the user of a sale to agree or for an address, as
/// `transfer_gate` in the database has it.
pub(crate) async fn gate(
    core: &Core,
    client: &Client,
    user: UserId,
    quote: &Quote,
    refusal: &mut Refusal,
) -> Result<()> {
    let mut open = open_before_payment(core, client, user, &quote.payment_method).await?;
    if quote.side == Side::Sell {
        open.retain(|hold| !matches!(hold, Hold::Registration | Hold::Address));
    }
    if !open.is_empty() {
        let open: Vec<_> = open.into_iter().map(Hold::description).collect();
        refusal.add(Code::FiatAmountInvalid, Some(open.join(" ").into()));
    }
    Ok(())
}

/// The open checks of a user whom the partner wants checked before a payment by this method; none of
/// any other user.
pub(crate) async fn open_before_payment(
    core: &Core,
    client: &Client,
    user: UserId,
    method: &str,
) -> Result<Vec<Hold>> {
    let method = client.catalogue.payment_method(method);
    // One that is no longer there is refused besides.
    let kind = method.map_or(PaymentMethodKind::Other, |method| method.kind);
    if !client.tenant.checks_before_payment(kind, core.settings.compliance.gate_of_live()) {
        return Ok(Vec::new());
    }
    Hold::of_user(core, client.key_of(user)).await
}

fn beyond(refusal: &mut Refusal, whose: &str, min: Decimal, max: Decimal) {
    let (min, max) = (min.normalize(), max.normalize());
    refusal.add(Code::FiatAmountInvalid, Some(format!("the {whose} takes {min} to {max}").into()));
}

/// Reads the user, and refuses one that may not trade.
pub(crate) async fn user(
    core: &Core,
    key: UserKey,
    refusal: &mut Refusal,
) -> Result<Option<Usage>> {
    let read = limits::usage(core, key).await?;
    may_trade(read.as_ref(), refusal);
    Ok(read)
}

/// Refuses a user that is disabled (ER124), or gone since the quote (ER709).
pub(crate) fn may_trade(usage: Option<&Usage>, refusal: &mut Refusal) {
    match usage {
        None => refusal.add(Code::UserNotFound, None),
        Some(usage) if usage.trader.disabled => refusal.add(Code::UserDisabled, None),
        Some(_) => {}
    }
}

/// An amount in the currency of limits beyond what the user, or the account that the confirm names, may
/// still trade for today (ER011), or without a rate to that currency (ER008).
pub(crate) fn limits(
    core: &Core,
    client: &Client,
    quote: &Quote,
    usage: &Usage,
    account: &NamedAccount,
    refusal: &mut Refusal,
) {
    let Some(amount) = limits::limit_amount(core, &client.catalogue, quote) else {
        return no_limit_rate(refusal);
    };
    if amount > usage.trader.rules.remaining(quote.side, &usage.spent) {
        refusal.add(Code::FiatAmountInvalid, Some(LIMIT_REACHED.into()));
    }
    if let NamedAccount::Known(PaymentAccount { id, amount_limit: Some(limit), .. }) = account
        && amount > remaining(*limit, usage.spent.naming_account(*id))
    {
        refusal.add(Code::FiatAmountInvalid, Some(ACCOUNT_LIMIT_REACHED.into()));
    }
}

/// The order cannot count towards limits, because there is no rate to their currency (ER008).
pub(crate) fn no_limit_rate(refusal: &mut Refusal) {
    let detail = "there is no rate to the currency of limits";
    refusal.add(Code::CurrencyInMaintenance, Some(detail.into()));
}
