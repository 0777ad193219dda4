//! Methods that are paid from an account with the wallet provider.

use super::family::{DayLimit, Family, LimitAmount};

/// New accounts are limited as all others.
const LIMIT: DayLimit = DayLimit { name: "walletpay_limit", amount: LimitAmount::NonRaisedAccount };

pub(super) const FAMILY: Family =
    Family { methods: &["walletpay"], new_account_limit: Some(LIMIT), account_limit: Some(LIMIT) };
