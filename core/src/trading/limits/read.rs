//! `GET /api/v2/user/limit`: a user's limits and their remainders, in total and by account.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use http::Method;
use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::Serialize;

use super::limit_rules::{Rules, Spent, remaining};
use super::{INTERVAL, spent, trader};
use crate::Core;
use crate::auth::caller::ClientAndUser;
use crate::endpoint::openapi::doc::{Doc, Kind, optional};
use crate::endpoint::{Endpoint, Json};
use crate::http::request::Input;
use crate::platform::error::{Code, Result};
use crate::tenancy::tenants::Scope;
use crate::trading::payment_methods::families::Family;
use crate::trading::quotes::Side;
use crate::users::accounts::{self, AccountType, PaymentAccount};
use rampart_types::{CurrencyCode, fiat_exponent};

/// The `calculator` member of every amount.
const CALCULATOR: &str = "decimal";
/// The `boundaryType` member of every limit.
const MAXIMUM: &str = "maximum";

/// Version 2, the only one.
pub struct V2;

impl Endpoint for V2 {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/api/v2/user/limit";
    const SCOPE: Option<Scope> = Some(Scope::UsersRead);
    const ERRORS: &'static [Code] = &[Code::ClientCredentialsInvalid];
    const DOC: Doc = Doc {
        summary: "Read the user's limits",
        details: "Limits are for the last 24 hours. A `hard` one refuses the confirm (ER011); a \
                  `soft` one may ask for more at the payment.",
        query: &[optional(
            "groups",
            Kind::Text,
            "`userLimits`, `accountLimits`, or both with a comma between; both when it is absent.",
        )],
        answer: r#"{"limits": {"user_day_limit": {"type": "user", "blockType": "hard",
            "subType": "user_day_limit", "boundaryType": "maximum",
            "limit": {"amount": "100000", "calculator": "decimal", "currency": {"code": "EUR"}},
            "remainingLimit":
                {"amount": "90000", "calculator": "decimal", "currency": {"code": "EUR"}}}},
            "accounts": {}, "limitedAccountTypes": ["creditCard"]}"#,
        ..Doc::NONE
    };
    type Caller = ClientAndUser;
    type Request = Groups;
    type Response = Json<UserLimits>;

    fn read(input: &Input, _: &ClientAndUser) -> Result<Groups> {
        Ok(Groups::read(input.head.query.as_deref()))
    }

    async fn call(core: &Core, caller: ClientAndUser, groups: Groups) -> Result<Json<UserLimits>> {
        let key = caller.client.key_of(caller.user);
        let now = core.clock.now();
        let mut conn = core.db.acquire().await?;
        let rules = trader(&mut conn, key).await?.ok_or(Code::UserNotFound)?.rules;
        let spent = spent(&mut conn, key).await?;
        let accounts = accounts::list(&mut conn, core, key).await?;
        let currency = core.settings.limits.currency;
        let mut limits = BTreeMap::new();
        if groups.user {
            limits = user_limits(&rules, currency, &spent, &accounts);
        }
        let mut by_identifier = BTreeMap::new();
        if groups.accounts {
            for account in &accounts {
                let limited = Account::new(account, &accounts, &rules, &spent, currency, now);
                by_identifier.insert(account.details.identifier.clone(), limited);
            }
        }
        let limited_account_types = Family::for_kind(AccountType::CreditCard).methods.to_vec();
        Ok(Json(UserLimits { limits, accounts: by_identifier, limited_account_types }))
    }
}

/// The groups of limits that a request names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Groups {
    user: bool,
    accounts: bool,
}

impl Groups {
    /// The groups that a query names; both if it names no known one.
    fn read(query: Option<&str>) -> Self {
        let pairs = url::form_urlencoded::parse(query.unwrap_or("").as_bytes());
        let named = pairs.filter(|(name, _)| name == "groups").map(|(_, value)| value);
        let named: Vec<_> = named.take(1).collect();
        let has =
            |group: &str| named.iter().any(|list| list.split(',').any(|one| one.trim() == group));
        let (user, accounts) = (has("userLimits"), has("accountLimits"));
        if user || accounts { Self { user, accounts } } else { Self { user: true, accounts: true } }
    }
}

/// The limits of one user.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UserLimits {
    /// Limits of trades.
    limits: BTreeMap<&'static str, Limit>,
    /// By account identifier.
    accounts: BTreeMap<String, Account>,
    /// Payment methods whose accounts are limited until their limit is raised.
    limited_account_types: Vec<&'static str>,
}

/// An amount in the smallest unit of its currency.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[schemars(rename = "LimitMoney")]
pub(crate) struct Money {
    /// The amount.
    amount: String,
    /// Arithmetic of the amount: `decimal`.
    calculator: &'static str,
    /// Currency of the amount.
    currency: Currency,
}

/// Currency of a limit.
#[derive(Clone, Copy, Debug, JsonSchema, Serialize)]
#[schemars(rename = "LimitCurrency")]
struct Currency {
    /// Code of ISO 4217.
    code: CurrencyCode,
}

impl Money {
    fn new(amount: Decimal, code: CurrencyCode) -> Self {
        let exponent = fiat_exponent(code).unwrap_or(2);
        let mut minor = amount
            .round_dp_with_strategy(exponent, rust_decimal::RoundingStrategy::ToNegativeInfinity);
        minor.rescale(exponent);
        let digits = minor.to_string().replace('.', "");
        let digits = digits.trim_start_matches('0');
        let amount = if digits.is_empty() { "0" } else { digits }.to_owned();
        Self { amount, calculator: CALCULATOR, currency: Currency { code } }
    }
}

/// Money, or a number of accounts.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[schemars(rename = "LimitQuantity")]
#[serde(untagged)]
enum Quantity {
    Money(Money),
    Count(u32),
}

/// One limit.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[schemars(rename = "LimitEntry")]
#[serde(rename_all = "camelCase")]
pub(crate) struct Limit {
    /// `user`, or `paymentMethod` for what accounts pay.
    #[serde(rename = "type")]
    kind: &'static str,
    /// `hard` refuses a confirm, `soft` may ask for more at the payment.
    block_type: &'static str,
    /// Name of the limit.
    sub_type: &'static str,
    /// `maximum`: no more than the limit.
    boundary_type: &'static str,
    /// Most that may be traded, or most accounts.
    limit: Quantity,
    /// Rest of it.
    remaining_limit: Quantity,
}

fn user_limits(
    rules: &Rules,
    currency: CurrencyCode,
    spent: &Spent,
    accounts: &[PaymentAccount],
) -> BTreeMap<&'static str, Limit> {
    let quantities = |limit: Decimal, rest: Decimal| {
        let money = |amount| Quantity::Money(Money::new(amount, currency));
        (money(limit), money(rest))
    };
    let money = |limit: Decimal, spent: Decimal| quantities(limit, remaining(limit, spent));
    let to_buy = rules.remaining(Side::Buy, spent);
    let limited = spent.for_family(Family::for_kind(AccountType::CreditCard));
    let open = |account: &&PaymentAccount| {
        account.kind == AccountType::CreditCard && !account.limit_raised && !account.disabled
    };
    let taken = Decimal::from(accounts.iter().filter(open).count());
    let count = |n: Decimal| Quantity::Count(u32::try_from(n).unwrap_or(u32::MAX));
    let allowed = rules.non_raised_accounts;
    let entry = |kind, block_type, sub_type, (limit, remaining_limit)| {
        let boundary_type = MAXIMUM;
        (sub_type, Limit { kind, block_type, sub_type, boundary_type, limit, remaining_limit })
    };
    BTreeMap::from([
        entry("user", "hard", "user_day_limit", quantities(rules.for_side(Side::Buy), to_buy)),
        entry(
            "paymentMethod",
            "soft",
            "non_raised_limit_account_limit",
            money(rules.non_raised_account, limited),
        ),
        entry(
            "paymentMethod",
            "soft",
            "new_limited_account_limit",
            money(rules.new_account, limited),
        ),
        entry(
            "paymentMethod",
            "soft",
            "number_of_non_raised_accounts_limit",
            (count(allowed), count(remaining(allowed, taken))),
        ),
    ])
}

/// One account with its limit and the remainder.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "LimitedAccount")]
#[serde(rename_all = "camelCase")]
struct Account {
    /// IBAN, masked card number, or id at the wallet provider.
    identifier: String,
    /// Name of the holder.
    name: String,
    /// Kind of the account.
    #[serde(rename = "type")]
    kind: AccountType,
    /// `true` if it cannot be used.
    disabled: bool,
    /// `true` once it is known to be the user's.
    verified: bool,
    /// `true` if its limit was raised.
    limit_raised: bool,
    /// Amount that it has paid in the time of its limit.
    total_spent: Money,
    /// Its limit; null without one. Sales that name the account take from an `account_limit`, too.
    limit: Option<Limit>,
    /// `true` for a card that the processor keeps.
    is_stored_card: bool,
    /// Time of the last order that named it; of its creation until then.
    last_used_at: DateTime<Utc>,
    /// True if sales can be paid out to it.
    is_coin_to_fiat_allowed: bool,
    /// `true` for a card that sales are paid out to at once; null for other accounts.
    fast_access_enabled: Option<bool>,
}

impl Account {
    /// One of the user's `accounts`, by the trades of the day.
    fn new(
        account: &PaymentAccount,
        accounts: &[PaymentAccount],
        rules: &Rules,
        spent: &Spent,
        currency: CurrencyCode,
        now: DateTime<Utc>,
    ) -> Self {
        let money = |amount| Money::new(amount, currency);
        let quantity = |amount| Quantity::Money(money(amount));
        let (paid, sold) = (spent.for_account(account, accounts), spent.sold_to(account.id));
        let is_new = account.created_at > now - INTERVAL;
        let limit = rules.for_account(account, is_new).map(|limit| Limit {
            kind: "paymentMethod",
            block_type: if limit.is_hard { "hard" } else { "soft" },
            sub_type: limit.name,
            boundary_type: MAXIMUM,
            limit: quantity(limit.amount),
            remaining_limit: quantity(limit.remaining(paid, sold)),
        });
        Self {
            identifier: account.details.identifier.clone(),
            name: account.details.holder.clone(),
            kind: account.kind,
            disabled: account.disabled,
            verified: account.verified,
            limit_raised: account.limit_raised,
            total_spent: money(paid),
            limit,
            is_stored_card: account.is_stored_card,
            last_used_at: account.last_used_at,
            is_coin_to_fiat_allowed: account.verified && !account.disabled,
            fast_access_enabled: account.fast_access_enabled(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_in_the_smallest_unit() {
        let text = |amount: &str, code: &str| {
            Money::new(amount.parse().unwrap(), code.parse().unwrap()).amount
        };
        assert_eq!(text("1000", "EUR"), "100000");
        assert_eq!(text("0.05", "EUR"), "5");
        assert_eq!(text("0", "EUR"), "0");
        assert_eq!(text("12.349", "EUR"), "1234");
    }

    #[test]
    fn groups_are_both_unless_one_is_named() {
        let both = Groups { user: true, accounts: true };
        for query in [None, Some("groups="), Some("groups=userLimits,accountLimits"), Some("x=1")] {
            assert_eq!(Groups::read(query), both, "{query:?}");
        }
        assert_eq!(Groups::read(Some("groups=userLimits")), Groups { user: true, accounts: false });
    }
}
