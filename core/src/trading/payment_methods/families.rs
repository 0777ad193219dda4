//! Families of payment methods: the methods that share one kind of account, and the day limit of
//! such an account. One file per family. The limit of one payment is the method's own
//! (`trading/catalogue/payment_method.rs`).

mod bank;
mod card;
mod family;
mod wallet;

pub(crate) use self::family::{Family, LimitAmount};
use crate::users::accounts::Kind;

impl Family {
    /// The family that is paid from accounts of a kind.
    pub(crate) const fn for_kind(kind: Kind) -> &'static Self {
        match kind {
            Kind::BankTransfer => &bank::FAMILY,
            Kind::CreditCard => &card::FAMILY,
            Kind::Walletpay => &wallet::FAMILY,
        }
    }

    /// The kind of account that this method is paid from; `None` for a method without accounts.
    pub(crate) fn kind_of(method: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| Self::for_kind(*kind).contains(method))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_belongs_to_one_family_and_every_account_kind_is_a_method_of_its_own() {
        let mut methods: Vec<_> =
            Kind::ALL.iter().flat_map(|kind| Family::for_kind(*kind).methods).collect();
        let all = methods.len();
        methods.sort_unstable();
        methods.dedup();
        assert_eq!(methods.len(), all);
        for kind in Kind::ALL {
            assert!(Family::for_kind(kind).contains(kind.as_str()), "{kind:?}");
        }
    }
}
