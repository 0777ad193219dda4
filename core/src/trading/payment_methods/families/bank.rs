//! Methods that are paid from a bank account. Its day has no limit of its own.

use super::family::Family;

pub(super) const FAMILY: Family = Family {
    methods: &[
        "bankTransfer",
        "payByBank",
        "bankredirect1",
        "bankredirect2",
        "bankredirect3",
        "bankredirect4",
    ],
    new_account_limit: None,
    account_limit: None,
};
