//! The description of a family.

/// A family of payment methods.
#[derive(Debug)]
pub(crate) struct Family {
    /// Codes of the methods that are paid from an account of this kind, or out to it.
    pub(crate) methods: &'static [&'static str],
    /// Day limit of an account that is new, until an operator raises it; `None` is no limit.
    pub(crate) new_account_limit: Option<DayLimit>,
    /// Day limit of any other account, until an operator raises it; `None` is no limit.
    pub(crate) account_limit: Option<DayLimit>,
}

/// A day limit of accounts, by its name on the wire and the rule that has its amount.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DayLimit {
    pub(crate) name: &'static str,
    pub(crate) amount: LimitAmount,
}

/// A user's rule that an account's day limit takes its amount from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LimitAmount {
    /// The amount of accounts that are new.
    NewAccount,
    /// The amount of accounts that no operator has raised.
    NonRaisedAccount,
}

impl Family {
    /// True if the payment method of this code belongs to the family.
    pub(crate) fn contains(&self, method: &str) -> bool {
        self.methods.contains(&method)
    }
}
