//! The postings of what happens to orders.

use rust_decimal::Decimal;

use super::AccountKind::{
    Conversion, Customer, FeeNetwork, FeePartner, FeePaymentMethod, FeeProvider, PayoutPayable,
    Spread, Treasury,
};
use super::{AccountKind, Posting};
use crate::trading::quotes::Side;
use rampart_types::FeeBreakdown;

/// The amounts of an order, which obey the fee identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OrderAmounts {
    pub(crate) side: Side,
    pub(crate) fiat: Decimal,
    pub(crate) fiat_currency: String,
    pub(crate) crypto: Decimal,
    pub(crate) crypto_currency: String,
    pub(crate) price: Decimal,
    pub(crate) fees: FeeBreakdown,
}

impl OrderAmounts {
    /// Amount and currency that the user pays.
    pub(crate) fn paid(&self) -> (Decimal, &str) {
        match self.side {
            Side::Buy => (self.fiat, &self.fiat_currency),
            Side::Sell => (self.crypto, &self.crypto_currency),
        }
    }

    /// Amount and currency that the user gets.
    pub(crate) fn payout(&self) -> (Decimal, &str) {
        match self.side {
            Side::Buy => (self.crypto, &self.crypto_currency),
            Side::Sell => (self.fiat, &self.fiat_currency),
        }
    }

    /// The exchange: what the user has paid becomes fees and what is owed to the user.
    pub(crate) fn execution(&self) -> Vec<Posting> {
        let FeeBreakdown { partner, provider, payment_method, network, spread, affiliate } =
            self.fees;
        let fees = [
            (FeePartner, partner + affiliate),
            (FeeProvider, provider),
            (FeePaymentMethod, payment_method),
            (FeeNetwork, network),
            (Spread, spread),
        ];
        let total: Decimal = fees.iter().map(|(_, fee)| fee).sum();
        let ((paid, pays), (payout, gets)) = (self.paid(), self.payout());
        // Fees are in fiat: out of the payment of a purchase, and of the proceeds of a sale.
        let (fiat, coins) = match self.side {
            Side::Buy => (total - self.fiat, self.crypto),
            Side::Sell => (total + self.fiat, -self.crypto),
        };
        let mut postings = vec![
            Posting::new(Customer, pays, paid),
            Posting::new(Conversion, &self.fiat_currency, fiat),
            Posting::new(Conversion, &self.crypto_currency, coins),
            Posting::new(PayoutPayable, gets, -payout),
        ];
        let of =
            |(kind, fee): (AccountKind, Decimal)| Posting::new(kind, &self.fiat_currency, -fee);
        postings.extend(fees.map(of));
        postings
    }
}

/// A posting to where an amount is held: coins in the treasury, fiat at the connector's provider.
pub(crate) fn holding(is_coins: bool, connector: &str, currency: &str, amount: Decimal) -> Posting {
    match is_coins {
        true => Posting::new(Treasury, currency, amount),
        false => Posting::at(connector, currency, amount),
    }
}

/// The same entry, undone.
pub(crate) fn reversed(postings: Vec<Posting>) -> Vec<Posting> {
    let negate = |line: Posting| Posting { amount: -line.amount, ..line };
    postings.into_iter().map(negate).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn amounts(side: Side, fiat: i64) -> OrderAmounts {
        OrderAmounts {
            side,
            fiat: Decimal::new(fiat, 2),
            fiat_currency: "EUR".to_owned(),
            crypto: Decimal::new(262_011, 8),
            crypto_currency: "BTC".to_owned(),
            price: Decimal::from(90_000),
            fees: FeeBreakdown {
                partner: Decimal::new(250, 2),
                provider: Decimal::new(250, 2),
                payment_method: Decimal::new(650, 2),
                network: Decimal::new(150, 2),
                spread: Decimal::new(119, 2),
                affiliate: Decimal::ZERO,
            },
        }
    }

    fn sums(postings: &[Posting]) -> BTreeMap<&str, Decimal> {
        let mut sums = BTreeMap::new();
        for line in postings {
            *sums.entry(line.currency.as_str()).or_default() += line.amount;
        }
        sums
    }

    #[test]
    fn an_execution_balances_and_leaves_what_is_paid_out() {
        for order in [amounts(Side::Buy, 25_000), amounts(Side::Sell, 22_162)] {
            let postings = order.execution();
            assert!(sums(&postings).values().all(Decimal::is_zero), "{postings:?}");
            let (payout, currency) = order.payout();
            assert!(postings.contains(&Posting::new(PayoutPayable, currency, -payout)));
            let conversion = Posting::new(Conversion, "EUR", Decimal::new(23_581, 2));
            let sold = order.side == Side::Sell;
            let signed = if sold { conversion } else { reversed(vec![conversion]).remove(0) };
            assert!(postings.contains(&signed), "{postings:?}");
            let undone = [postings.clone(), reversed(postings)].concat();
            assert!(sums(&undone).values().all(Decimal::is_zero));
        }
    }
}
