//! Fees of a transaction after EIP-1559, in wei for each unit of gas.

use alloy::primitives::U256;

/// The fees of one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fees {
    /// Most for each unit of gas.
    pub(crate) max: u128,
    /// The part of it that the block's producer gets.
    pub(crate) priority: u128,
}

/// The fees of the moment, as a node tells them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Market {
    /// The next block's base fee.
    pub(crate) base: u128,
    /// The usual part of producers.
    pub(crate) priority: u128,
}

impl Market {
    /// Room for the base fee to double while the transaction waits.
    const fn comfortable(self) -> u128 {
        self.base.saturating_mul(2).saturating_add(self.priority)
    }
}

impl Fees {
    /// Fees of a first transaction; `None` if the moment's are above the bound.
    pub(crate) fn first(market: Market, bound: u128) -> Option<Self> {
        let needed = market.base.saturating_add(market.priority);
        let fees = Self { max: market.comfortable().min(bound), priority: market.priority };
        (needed <= bound).then_some(fees)
    }

    /// Fees of a transaction that replaces this one: a quarter higher or those of the moment. `None`
    /// if the bound leaves less than the tenth by which nodes know a replacement.
    pub(crate) fn replacement(self, market: Market, bound: u128) -> Option<Self> {
        let raised = |fee: u128, by: u128| fee.saturating_add(fee.div_ceil(by));
        let max = raised(self.max, 4).max(market.comfortable()).min(bound);
        let priority = raised(self.priority, 4).max(market.priority).min(max);
        let enough = max >= raised(self.max, 10) && priority >= raised(self.priority, 10);
        enough.then_some(Self { max, priority })
    }
}

/// The bound for each unit of gas, of a bound for the whole transaction in wei.
pub(crate) fn bound_for_each(total: U256, gas: u64) -> u128 {
    let each = total.checked_div(U256::from(gas)).unwrap_or_default();
    u128::try_from(each).unwrap_or(u128::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARKET: Market = Market { base: 100, priority: 10 };

    #[test]
    fn a_first_transaction_has_room_within_its_bound() {
        assert_eq!(Fees::first(MARKET, 1_000), Some(Fees { max: 210, priority: 10 }));
        assert_eq!(Fees::first(MARKET, 150), Some(Fees { max: 150, priority: 10 }));
        assert_eq!(Fees::first(MARKET, 110), Some(Fees { max: 110, priority: 10 }));
        assert_eq!(Fees::first(MARKET, 109), None);
        assert_eq!(Fees::first(MARKET, 0), None);
    }

    #[test]
    fn a_replacement_is_higher_by_what_nodes_demand_or_is_none() {
        let fees = Fees { max: 200, priority: 10 };
        assert_eq!(fees.replacement(MARKET, 1_000), Some(Fees { max: 250, priority: 13 }));
        assert_eq!(fees.replacement(MARKET, 230), Some(Fees { max: 230, priority: 13 }));
        assert_eq!(fees.replacement(MARKET, 219), None);
        let higher = Market { base: 1_000, priority: 50 };
        assert_eq!(fees.replacement(higher, 5_000), Some(Fees { max: 2_050, priority: 50 }));
        let none = Fees { max: 0, priority: 0 };
        assert_eq!(none.replacement(MARKET, 0), Some(none));
    }

    #[test]
    fn a_bound_is_divided_by_the_gas() {
        assert_eq!(bound_for_each(U256::from(21_000 * 7 + 5), 21_000), 7);
        assert_eq!(bound_for_each(U256::MAX, 21_000), u128::MAX);
        assert_eq!(bound_for_each(U256::from(9), 0), 0);
    }
}
