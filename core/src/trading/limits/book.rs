//! The arithmetic of limits: rules and what was spent in, what is left out. No input, no output.

use rust_decimal::Decimal;
use uuid::Uuid;

use crate::trading::quotes::Side;
use crate::users::accounts::{Kind, PaymentAccount};
use rampart_types::CurrencyCode;

/// Most that one account takes a day while its limit is not raised.
const NON_RAISED_ACCOUNT: Decimal = Decimal::from_parts(500, 0, 0, false, 0);
/// Most that an account takes on the day it is first used.
const NEW_ACCOUNT: Decimal = Decimal::from_parts(250, 0, 0, false, 0);
/// Most accounts of one user whose limit is not raised.
const NON_RAISED_ACCOUNTS: Decimal = Decimal::from_parts(3, 0, 0, false, 0);

/// Payment methods whose accounts are limited until an operator raises them.
pub(crate) const LIMITED_METHODS: [&str; 4] =
    ["mobilepay1", "mobilepay2", "creditCard", "localcard"];

/// Methods that are paid from an account of a kind, or out to it.
pub(crate) const fn methods(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::CreditCard => &LIMITED_METHODS,
        Kind::Walletpay => &["walletpay"],
        Kind::BankTransfer => &[
            "bankTransfer",
            "payByBank",
            "bankredirect1",
            "bankredirect2",
            "bankredirect3",
            "bankredirect4",
        ],
    }
}

/// What a user may do, in one currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rules {
    pub(crate) currency: CurrencyCode,
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
    /// The rules of a level that allows so much buying and selling, where `set` has no other
    /// value under a limit's name.
    pub(crate) fn new(
        currency: CurrencyCode,
        (buy, sell): (Decimal, Decimal),
        set: impl Fn(&str) -> Option<Decimal>,
    ) -> Self {
        let day = set("user_day_limit").unwrap_or(buy.max(sell));
        let own = |name: &str, default: Decimal| set(name).unwrap_or(default).min(day);
        let own_day = set("user_day_limit").is_some();
        let side = |default: Decimal| if own_day { day } else { default };
        Self {
            currency,
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

    /// Most of one side, a day.
    pub(crate) fn of(&self, side: Side) -> Decimal {
        match side {
            Side::Buy => self.buy,
            Side::Sell => self.sell,
        }
        .min(self.day)
    }

    /// What may still be bought or sold for.
    pub(crate) fn left(&self, side: Side, spent: &Spent) -> Decimal {
        left(self.of(side), spent.of(side)).min(left(self.day, spent.total()))
    }

    /// The limit of an account; `None` when its limit is raised and it has none of its own.
    pub(crate) fn of_account(
        &self,
        account: &PaymentAccount,
        is_new: bool,
    ) -> Option<AccountLimit> {
        let limit = |name, amount| Some(AccountLimit { name, amount });
        if account.disabled {
            return limit("disabled_account_limit", Decimal::ZERO);
        }
        if let Some(own) = account.amount_limit {
            return limit("account_limit", own);
        }
        match account.kind {
            _ if account.limit_raised => None,
            Kind::Walletpay => limit("walletpay_limit", self.non_raised_account),
            Kind::CreditCard if is_new => limit("new_limited_account_limit", self.new_account),
            Kind::CreditCard => limit("non_raised_limit_account_limit", self.non_raised_account),
            Kind::BankTransfer => None,
        }
    }
}

/// What an account may take a day, and by which rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AccountLimit {
    pub(crate) name: &'static str,
    pub(crate) amount: Decimal,
}

/// What is left of a limit, never below zero.
pub(crate) fn left(limit: Decimal, spent: Decimal) -> Decimal {
    (limit - spent).max(Decimal::ZERO)
}

/// What was traded in a day by one method, with one account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trade {
    pub(crate) side: Side,
    pub(crate) method: String,
    /// `None` where the order names none.
    pub(crate) account: Option<Uuid>,
    pub(crate) amount: Decimal,
}

/// What was traded in a day.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spent(Vec<Trade>);

impl Spent {
    /// All of these.
    pub(crate) fn new(trades: impl IntoIterator<Item = Trade>) -> Self {
        Self(trades.into_iter().collect())
    }

    /// Both sides together.
    pub(crate) fn total(&self) -> Decimal {
        self.sum(|_| true)
    }

    /// One side.
    pub(crate) fn of(&self, side: Side) -> Decimal {
        self.sum(|trade| trade.side == side)
    }

    /// What was bought by these methods.
    pub(crate) fn by(&self, methods: &[&str]) -> Decimal {
        self.sum(|trade| trade.side == Side::Buy && methods.contains(&&*trade.method))
    }

    /// What was spent from `account`, of the user's `accounts`. An order that names none counts
    /// for the account of its method's kind that was used last.
    pub(crate) fn by_account(
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
            let fits = methods(account.kind).contains(&&*trade.method);
            bought && trade.account.map_or(is_last && fits, |named| named == account.id)
        })
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
    use crate::users::accounts::AccountDetails;

    fn euro() -> CurrencyCode {
        "EUR".parse().unwrap()
    }

    fn rules(set: &[(&str, u32)]) -> Rules {
        let set: BTreeMap<_, _> = set.iter().copied().collect();
        Rules::new(euro(), (1000.into(), 800.into()), |name| set.get(name).map(|n| (*n).into()))
    }

    fn account(kind: Kind, used: i64) -> PaymentAccount {
        PaymentAccount {
            id: Uuid::from_u128(u128::from(used.unsigned_abs())),
            kind,
            details: AccountDetails { identifier: "a".into(), holder: "b".into(), token: None },
            is_stored_card: false,
            limit_raised: false,
            amount_limit: None,
            verified: true,
            disabled: false,
            last_used_at: DateTime::UNIX_EPOCH + TimeDelta::seconds(used),
        }
    }

    fn bought(method: &str, amount: u32) -> Trade {
        let (method, amount) = (method.to_owned(), amount.into());
        Trade { side: Side::Buy, method, account: None, amount }
    }

    #[test]
    fn an_operators_limit_takes_the_place_of_the_levels() {
        assert_eq!((rules(&[]).day, rules(&[]).sell), (1000.into(), 800.into()));
        let raised = rules(&[("user_day_limit", 5000)]);
        assert_eq!((raised.buy, raised.sell), (5000.into(), 5000.into()));
        let lowered = rules(&[("user_day_limit", 100)]);
        assert_eq!((lowered.buy, lowered.non_raised_account), (100.into(), 100.into()));
        assert_eq!(rules(&[("user_day_limit_fiat_to_coin", 40)]).buy, 40.into());
    }

    #[test]
    fn an_accounts_strictest_rule_counts() {
        let name = |account: &PaymentAccount, is_new| {
            rules(&[]).of_account(account, is_new).map(|limit| limit.name)
        };
        let card = account(Kind::CreditCard, 1);
        assert_eq!(name(&card, true), Some("new_limited_account_limit"));
        assert_eq!(name(&card, false), Some("non_raised_limit_account_limit"));
        let raised = PaymentAccount { limit_raised: true, ..card.clone() };
        assert_eq!(name(&raised, true), None);
        let own = PaymentAccount { amount_limit: Some(7.into()), ..raised };
        assert_eq!(name(&own, false), Some("account_limit"));
        let disabled = PaymentAccount { disabled: true, ..own };
        assert_eq!(name(&disabled, false), Some("disabled_account_limit"));
        assert_eq!(name(&account(Kind::BankTransfer, 1), true), None);
    }

    #[test]
    fn orders_count_for_the_account_that_was_used_last() {
        let accounts = [
            account(Kind::CreditCard, 1),
            account(Kind::CreditCard, 2),
            account(Kind::BankTransfer, 3),
        ];
        let named = Trade { account: Some(accounts[0].id), ..bought("creditCard", 5) };
        let sold = Trade { side: Side::Sell, ..bought("bankTransfer", 90) };
        let spent = Spent::new([bought("creditCard", 60), bought("mobilepay1", 7), named, sold]);
        let of = |at: usize| spent.by_account(&accounts[at], &accounts);
        assert_eq!([of(0), of(1), of(2)], [5.into(), 67.into(), 0.into()]);
        assert_eq!((spent.of(Side::Buy), spent.total()), (72.into(), 162.into()));
    }

    #[test]
    fn a_side_is_bound_by_its_own_limit_and_by_both_sides_together() {
        let rules = rules(&[("user_day_limit", 100), ("user_day_limit_coin_to_fiat", 30)]);
        let sold = Trade { side: Side::Sell, ..bought("bankTransfer", 25) };
        let spent = Spent::new([bought("creditCard", 60), sold]);
        assert_eq!(rules.left(Side::Sell, &spent), 5.into());
        assert_eq!(rules.left(Side::Buy, &spent), 15.into());
        assert_eq!(rules.left(Side::Sell, &Spent::new([bought("creditCard", 99)])), 1.into());
    }

    const SET: [&str; 3] =
        ["user_day_limit", "user_day_limit_fiat_to_coin", "user_day_limit_coin_to_fiat"];

    proptest! {
        #[test]
        fn no_side_goes_beyond_the_day(
            level in (0_u32..100_000, 0_u32..100_000),
            set in [proptest::option::of(0_u32..100_000), proptest::option::of(0_u32..100_000), proptest::option::of(0_u32..100_000)],
        ) {
            let find = |name: &str| {
                let at = SET.iter().position(|known| *known == name)?;
                set[at].map(Decimal::from)
            };
            let rules = Rules::new(euro(), (level.0.into(), level.1.into()), find);
            prop_assert!(rules.buy <= rules.day && rules.sell <= rules.day);
            prop_assert!(rules.non_raised_account <= rules.day && rules.new_account <= rules.day);
            prop_assert_eq!(rules.day, set[0].unwrap_or(level.0.max(level.1)).into());
        }

        #[test]
        fn no_row_of_trades_goes_beyond_a_limit(
            day in 0_u32..10_000,
            sell in 0_u32..10_000,
            wanted in proptest::collection::vec((any::<bool>(), 0_u32..3_000), 0..12),
        ) {
            let rules = rules(&[("user_day_limit", day), ("user_day_limit_coin_to_fiat", sell)]);
            let mut spent = Spent::default();
            for (buys, amount) in wanted {
                let side = if buys { Side::Buy } else { Side::Sell };
                let before = rules.left(side, &spent);
                let amount = Decimal::from(amount).min(before);
                spent.0.push(Trade { side, amount, ..bought("creditCard", 0) });
                prop_assert_eq!(rules.left(side, &spent), before - amount);
            }
            prop_assert!(spent.total() <= rules.day && spent.of(Side::Sell) <= rules.sell);
        }

        #[test]
        fn of_accounts_of_one_kind_one_bears_all_that_was_spent(
            used in proptest::collection::btree_set(1_i64..1_000, 1..6), amount: u32,
        ) {
            let accounts: Vec<_> =
                used.iter().map(|used| account(Kind::CreditCard, *used)).collect();
            let spent = Spent::new([bought("creditCard", amount)]);
            let each = accounts.iter().map(|one| spent.by_account(one, &accounts));
            prop_assert_eq!(each.sum::<Decimal>(), amount.into());
        }

        #[test]
        fn what_is_left_is_between_nothing_and_the_limit(limit in 0_u32.., orders in proptest::collection::vec(0_u32.., 0..9)) {
            let spent = Spent::new(orders.iter().map(|n| bought("creditCard", *n)));
            let rest = left(limit.into(), spent.total());
            prop_assert!(rest >= Decimal::ZERO && rest <= limit.into());
            prop_assert_eq!(rest.is_zero(), spent.total() >= limit.into());
        }
    }
}
