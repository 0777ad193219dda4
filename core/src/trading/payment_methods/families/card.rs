//! Methods that are paid from a card.

use super::family::{DayLimit, Family, LimitAmount};

pub(super) const FAMILY: Family = Family {
    methods: &["mobilepay1", "mobilepay2", "creditCard", "localcard"],
    new_account_limit: Some(DayLimit {
        name: "new_limited_account_limit",
        amount: LimitAmount::NewAccount,
    }),
    account_limit: Some(DayLimit {
        name: "non_raised_limit_account_limit",
        amount: LimitAmount::NonRaisedAccount,
    }),
};
