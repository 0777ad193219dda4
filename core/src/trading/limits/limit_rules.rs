//! The arithmetic of limits: rules and past trades in, remaining amounts out. No I/O.

use rust_decimal::Decimal;
use uuid::Uuid;

use crate::trading::payment_methods::families::{Family, LimitAmount};
use crate::trading::quotes::Side;
use crate::users::accounts::PaymentAccount;

/// Most that one account takes a day while its limit is not raised.
const NON_RAISED_ACCOUNT: Decimal = Decimal::from_parts(500, 0, 0, false, 0);
/// Most that an account takes on the day it is first used.
const NEW_ACCOUNT: Decimal = Decimal::from_parts(250, 0, 0, false, 0);
/// Most accounts of one user whose limit is not raised.
const NON_RAISED_ACCOUNTS: Decimal = Decimal::from_parts(3, 0, 0, false, 0);

/// A user's limits, in the currency of limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Buying and selling together, a day.
    pub(crate) day: Decimal,
    /// Buying, a day; never above `day`.
    pub(crate) buy: Decimal,
    /// Selling, a day; never above `day`.
    pub(crate) sell: Decimal,
    pub(crate) non_raised_account: Decimal,
    pub(crate) new_account: Decimal,
    pub(crate) non_raised_accounts: Decimal,
}

impl Rules {
    /// The rules of a level with these day limits of buying and selling; `set` has the values
    /// that an operator has set, by the limit's name.
    pub(crate) fn new(buy: Decimal, sell: Decimal, set: impl Fn(&str) -> Option<Decimal>) -> Self {
        let day = set("user_day_limit").unwrap_or(buy.max(sell));
        let own = |name: &str, default: Decimal| set(name).unwrap_or(default).min(day);
        let own_day = set("user_day_limit").is_some();
        let side = |default: Decimal| if own_day { day } else { default };
        Self {
            day,
            buy: own("user_day_limit_fiat_to_coin", side(buy)),
            sell: own("user_day_limit_coin_to_fiat", side(sell)),
            non_raised_account: own("non_raised_limit_account_limit", NON_RAISED_ACCOUNT),
            new_account: own("new_limited_account_limit", NEW_ACCOUNT),
            non_raised_accounts: set("number_of_non_raised_accounts_limit")
                .unwrap_or(NON_RAISED_ACCOUNTS)
                .floor(),
        }
    }

    /// True if any limit is above the same one of `other`.
    pub fn exceed(&self, other: &Self) -> bool {
        let limits = |rules: &Self| {
            let accounts = [rules.non_raised_account, rules.new_account, rules.non_raised_accounts];
            [rules.day, rules.buy, rules.sell].into_iter().chain(accounts)
        };
        limits(self).zip(limits(other)).any(|(limit, other)| limit > other)
    }

    /// Day limit of one side.
    pub(crate) fn for_side(&self, side: Side) -> Decimal {
        match side {
            Side::Buy => self.buy,
            Side::Sell => self.sell,
        }
        .min(self.day)
    }

    /// Amount that may still be bought or sold for.
    pub(crate) fn remaining(&self, side: Side, spent: &Spent) -> Decimal {
        remaining(self.for_side(side), spent.for_side(side)).min(remaining(self.day, spent.total()))
    }

    /// The limit of an account; `None` when its limit is raised and it has none of its own.
    pub(crate) fn for_account(
        &self,
        account: &PaymentAccount,
        is_new: bool,
    ) -> Option<AccountLimit> {
        let hard = |name, amount| Some(AccountLimit { name, amount, is_hard: true });
        let soft = |name, amount| Some(AccountLimit { name, amount, is_hard: false });
        if account.disabled {
            return hard("disabled_account_limit", Decimal::ZERO);
        }
        if let Some(own) = account.amount_limit {
            return hard("account_limit", own);
        }
        if account.limit_raised {
            return None;
        }
        let family = Family::for_kind(account.kind);
        let rule = if is_new { family.new_account_limit } else { family.account_limit }?;
        match rule.amount {
            LimitAmount::NewAccount => soft(rule.name, self.new_account),
            LimitAmount::NonRaisedAccount => soft(rule.name, self.non_raised_account),
        }
    }
}

/// An account's day limit, and the name of the rule that set it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AccountLimit {
    pub(crate) name: &'static str,
    pub(crate) amount: Decimal,
    /// True if it refuses a confirm that names the account; a soft one may ask for more at the payment.
    pub(crate) is_hard: bool,
}

impl AccountLimit {
    /// The remainder after these amounts. Payments alone take from a soft limit.
    pub(crate) fn remaining(&self, bought: Decimal, sold: Decimal) -> Decimal {
        remaining(self.amount, if self.is_hard { bought + sold } else { bought })
    }
}

/// The remainder of a limit, never below zero.
pub(crate) fn remaining(limit: Decimal, spent: Decimal) -> Decimal {
    (limit - spent).max(Decimal::ZERO)
}

/// The day's trades of one side by one method, with one account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trade {
    pub(crate) side: Side,
    pub(crate) method: String,
    /// `None` where the order names none.
    pub(crate) account: Option<Uuid>,
    pub(crate) amount: Decimal,
}

/// The day's trades of a user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spent(Vec<Trade>);

impl Spent {
    /// The sum of these trades.
    pub(crate) fn new(trades: impl IntoIterator<Item = Trade>) -> Self {
        Self(trades.into_iter().collect())
    }

    /// Both sides together.
    pub(crate) fn total(&self) -> Decimal {
        self.sum(|_| true)
    }

    /// Amount of one side.
    pub(crate) fn for_side(&self, side: Side) -> Decimal {
        self.sum(|trade| trade.side == side)
    }

    /// Amount bought by the methods of a family.
    pub(crate) fn for_family(&self, family: &Family) -> Decimal {
        self.sum(|trade| trade.side == Side::Buy && family.contains(&trade.method))
    }

    /// Amount bought from `account`, of the user's `accounts`. An order that names none counts
    /// for the account of its method's family that was used last.
    pub(crate) fn for_account(
        &self,
        account: &PaymentAccount,
        accounts: &[PaymentAccount],
    ) -> Decimal {
        let mut same = accounts.iter().filter(|other| other.kind == account.kind);
        let used_later = |other: &PaymentAccount| {
            (other.last_used_at, other.id) > (account.last_used_at, account.id)
        };
        let is_last = !same.any(used_later);
        self.sum(|trade| {
            let bought = trade.side == Side::Buy;
            let fits = Family::for_kind(account.kind).contains(&trade.method);
            bought && trade.account.map_or(is_last && fits, |named| named == account.id)
        })
    }

    /// Amount sold by orders that name the account.
    pub(crate) fn sold_to(&self, account: Uuid) -> Decimal {
        self.sum(|trade| trade.side == Side::Sell && trade.account == Some(account))
    }

    /// Amount bought and sold by orders that name the account.
    pub(crate) fn naming_account(&self, account: Uuid) -> Decimal {
        self.sum(|trade| trade.account == Some(account))
    }

    fn sum(&self, counts: impl Fn(&Trade) -> bool) -> Decimal {
        self.0.iter().filter(|trade| counts(trade)).map(|trade| trade.amount).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use chrono::{DateTime, TimeDelta};
    use proptest::prelude::*;

    use super::*;
    use crate::users::accounts::{AccountDetails, AccountType};

    fn rules(set: &[(&str, u32)]) -> Rules {
        let set: BTreeMap<_, _> = set.iter().copied().collect();
        Rules::new(1000.into(), 800.into(), |name| set.get(name).map(|n| (*n).into()))
    }

    fn account(kind: AccountType, used: i64) -> PaymentAccount {
        PaymentAccount {
            id: Uuid::from_u128(u128::from(used.unsigned_abs())),
            kind,
            details: AccountDetails { identifier: "a".into(), holder: "b".into(), token: None },
            version: String::new(),
            is_stored_card: false,
            limit_raised: false,
            amount_limit: None,
            verified: true,
            disabled: false,
            last_used_at: DateTime::UNIX_EPOCH + TimeDelta::seconds(used),
            created_at: DateTime::UNIX_EPOCH,
            fast_access: false,
        }
    }

    fn bought(method: &str, amount: u32) -> Trade {
        let (method, amount) = (method.to_owned(), amount.into());
        Trade { side: Side::Buy, method, account: None, amount }
    }

    #[test]
    fn an_operators_limit_replaces_the_levels_limit() {
        assert_eq!((rules(&[]).day, rules(&[]).sell), (1000.into(), 800.into()));
        let raised = rules(&[("user_day_limit", 5000)]);
        assert_eq!((raised.buy, raised.sell), (5000.into(), 5000.into()));
        let lowered = rules(&[("user_day_limit", 100)]);
        assert_eq!((lowered.buy, lowered.non_raised_account), (100.into(), 100.into()));
        assert_eq!(rules(&[("user_day_limit_fiat_to_coin", 40)]).buy, 40.into());
    }

    #[test]
    fn rules_exceed_others_by_any_limit() {
        let lowered = rules(&[("user_day_limit_coin_to_fiat", 700)]);
        assert!(rules(&[]).exceed(&lowered) && !lowered.exceed(&rules(&[])));
        assert!(!rules(&[]).exceed(&rules(&[])));
        let more_accounts = [("user_day_limit", 1), ("number_of_non_raised_accounts_limit", 4)];
        assert!(rules(&more_accounts).exceed(&rules(&[])));
    }

    #[test]
    fn an_accounts_strictest_rule_counts() {
        let name = |account: &PaymentAccount, is_new| {
            rules(&[]).for_account(account, is_new).map(|limit| limit.name)
        };
        let card = account(AccountType::CreditCard, 1);
        assert_eq!(name(&card, true), Some("new_limited_account_limit"));
        assert_eq!(name(&card, false), Some("non_raised_limit_account_limit"));
        let raised = PaymentAccount { limit_raised: true, ..card.clone() };
        assert_eq!(name(&raised, true), None);
        let own = PaymentAccount { amount_limit: Some(7.into()), ..raised };
        assert_eq!(name(&own, false), Some("account_limit"));
        let disabled = PaymentAccount { disabled: true, ..own };
        assert_eq!(name(&disabled, false), Some("disabled_account_limit"));
        assert_eq!(name(&account(AccountType::BankTransfer, 1), true), None);
    }

    #[test]
    fn orders_without_an_account_count_for_the_one_used_last() {
        let accounts = [
            account(AccountType::CreditCard, 1),
            account(AccountType::CreditCard, 2),
            account(AccountType::BankTransfer, 3),
        ];
        let named = Trade { account: Some(accounts[0].id), ..bought("creditCard", 5) };
        let sold = Trade { side: Side::Sell, ..bought("bankTransfer", 90) };
        let spent = Spent::new([bought("creditCard", 60), bought("mobilepay1", 7), named, sold]);
        let spent_from = |at: usize| spent.for_account(&accounts[at], &accounts);
        assert_eq!([spent_from(0), spent_from(1), spent_from(2)], [5.into(), 67.into(), 0.into()]);
        assert_eq!((spent.for_side(Side::Buy), spent.total()), (72.into(), 162.into()));
    }

    #[test]
    fn sales_take_from_a_hard_limit_of_their_account_alone() {
        let card = account(AccountType::CreditCard, 1);
        let named = |side| Trade { side, account: Some(card.id), ..bought("creditCard", 90) };
        let spent = Spent::new([named(Side::Buy), named(Side::Sell), bought("creditCard", 5)]);
        assert_eq!(spent.naming_account(card.id), 180.into());
        let accounts = std::slice::from_ref(&card);
        let (paid, sold) = (spent.for_account(&card, accounts), spent.sold_to(card.id));
        assert_eq!((paid, sold), (95.into(), 90.into()));
        let remaining = |account: &PaymentAccount| {
            rules(&[]).for_account(account, true).map(|limit| limit.remaining(paid, sold))
        };
        assert_eq!(remaining(&card), Some(155.into()));
        let own = PaymentAccount { amount_limit: Some(200.into()), ..card };
        assert_eq!(remaining(&own), Some(15.into()));
    }

    #[test]
    fn a_side_is_bound_by_its_own_limit_and_by_the_day_limit() {
        let rules = rules(&[("user_day_limit", 100), ("user_day_limit_coin_to_fiat", 30)]);
        let sold = Trade { side: Side::Sell, ..bought("bankTransfer", 25) };
        let spent = Spent::new([bought("creditCard", 60), sold]);
        assert_eq!(rules.remaining(Side::Sell, &spent), 5.into());
        assert_eq!(rules.remaining(Side::Buy, &spent), 15.into());
        assert_eq!(rules.remaining(Side::Sell, &Spent::new([bought("creditCard", 99)])), 1.into());
    }

    const SET: [&str; 3] =
        ["user_day_limit", "user_day_limit_fiat_to_coin", "user_day_limit_coin_to_fiat"];

    proptest! {
        #[test]
        fn no_side_exceeds_the_day_limit(
            level in (0_u32..100_000, 0_u32..100_000),
            set in [proptest::option::of(0_u32..100_000), proptest::option::of(0_u32..100_000), proptest::option::of(0_u32..100_000)],
        ) {
            let find = |name: &str| {
                let at = SET.iter().position(|known| *known == name)?;
                set[at].map(Decimal::from)
            };
            let rules = Rules::new(level.0.into(), level.1.into(), find);
            prop_assert!(rules.buy <= rules.day && rules.sell <= rules.day);
            prop_assert!(rules.non_raised_account <= rules.day && rules.new_account <= rules.day);
            prop_assert_eq!(rules.day, set[0].unwrap_or(level.0.max(level.1)).into());
        }

        #[test]
        fn no_sequence_of_trades_exceeds_a_limit(
            day in 0_u32..10_000,
            sell in 0_u32..10_000,
            wanted in proptest::collection::vec((any::<bool>(), 0_u32..3_000), 0..12),
        ) {
            let rules = rules(&[("user_day_limit", day), ("user_day_limit_coin_to_fiat", sell)]);
            let mut spent = Spent::default();
            for (buys, amount) in wanted {
                let side = if buys { Side::Buy } else { Side::Sell };
                let before = rules.remaining(side, &spent);
                let amount = Decimal::from(amount).min(before);
                spent.0.push(Trade { side, amount, ..bought("creditCard", 0) });
                prop_assert_eq!(rules.remaining(side, &spent), before - amount);
            }
            prop_assert!(spent.total() <= rules.day && spent.for_side(Side::Sell) <= rules.sell);
        }

        #[test]
        fn all_spending_counts_for_one_account_of_a_kind(
            used in proptest::collection::btree_set(1_i64..1_000, 1..6), amount: u32,
        ) {
            let accounts: Vec<_> =
                used.iter().map(|used| account(AccountType::CreditCard, *used)).collect();
            let spent = Spent::new([bought("creditCard", amount)]);
            let each = accounts.iter().map(|one| spent.for_account(one, &accounts));
            prop_assert_eq!(each.sum::<Decimal>(), amount.into());
        }

        #[test]
        fn the_remainder_is_between_zero_and_the_limit(limit in 0_u32.., orders in proptest::collection::vec(0_u32.., 0..9)) {
            let spent = Spent::new(orders.iter().map(|n| bought("creditCard", *n)));
            let rest = remaining(limit.into(), spent.total());
            prop_assert!(rest >= Decimal::ZERO && rest <= limit.into());
            prop_assert_eq!(rest.is_zero(), spent.total() >= limit.into());
        }
    }
}
