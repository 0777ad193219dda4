//! Families of payment methods: the methods that share one kind of account, and the day limit of
//! such an account. One file per family. The limit of one payment is the method's own
//! (`trading/catalogue/payment_method.rs`).

mod bank;
mod card;
mod family;
mod wallet;

pub(crate) use self::family::{Family, LimitAmount};
use crate::users::accounts::AccountType;

impl Family {
    /// The family that is paid from accounts of a kind.
    pub(crate) const fn for_kind(kind: AccountType) -> &'static Self {
        match kind {
            AccountType::BankTransfer => &bank::FAMILY,
            AccountType::CreditCard => &card::FAMILY,
            AccountType::Walletpay => &wallet::FAMILY,
        }
    }

    /// The kind of account that this method is paid from; `None` for a method without accounts.
    pub(crate) fn kind_of(method: &str) -> Option<AccountType> {
        AccountType::ALL.into_iter().find(|kind| Self::for_kind(*kind).contains(method))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_belongs_to_one_family_and_every_account_kind_is_a_method_of_its_own() {
        let mut methods: Vec<_> =
            AccountType::ALL.iter().flat_map(|kind| Family::for_kind(*kind).methods).collect();
        let all = methods.len();
        methods.sort_unstable();
        methods.dedup();
        assert_eq!(methods.len(), all);
        for kind in AccountType::ALL {
            assert!(Family::for_kind(kind).contains(kind.as_str()), "{kind:?}");
        }
    }
}
