//! Nonces of the account, given out one after the other, and the coins that their transactions take.

use std::collections::BTreeMap;

use alloy::primitives::{Address, U256};

/// Coins that a transaction takes from the account.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spending {
    /// Contract of the token; `None` for the chain's own coin.
    pub(crate) token: Option<Address>,
    /// Smallest units of it.
    pub(crate) units: U256,
    /// Most wei that the network has.
    pub(crate) network_fee: U256,
}

impl Spending {
    /// Smallest units of this token, or wei without one.
    fn units_of(&self, token: Option<Address>) -> U256 {
        let units = if self.token == token { self.units } else { U256::ZERO };
        let network_fee = if token.is_none() { self.network_fee } else { U256::ZERO };
        units.saturating_add(network_fee)
    }
}

/// Coins that the account must have for a transaction and for those that no block has yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Needed {
    /// Smallest units of the transaction's token; zero without one.
    pub(crate) token: U256,
    /// Wei.
    pub(crate) native: U256,
}

/// A payout's nonce, and what its transaction takes until a block has it.
#[derive(Clone, Copy, Debug)]
struct HeldNonce {
    nonce: u64,
    spending: Spending,
}

/// Nonces of the payouts that this process carries out.
#[derive(Debug, Default)]
pub(crate) struct Nonces {
    /// By the name of who carries it out: of one command there may be two, while the lease of the one is
    /// lost and it does not know yet.
    held: BTreeMap<String, HeldNonce>,
    /// Below it every nonce is used for good.
    floor: u64,
}

impl Nonces {
    /// The next free nonce, held from now on. `count` is what the node says.
    pub(crate) fn take(&mut self, holder: &str, count: u64, spending: Spending) -> u64 {
        let mut nonce = count.max(self.floor);
        while self.held.values().any(|held| held.nonce == nonce) {
            nonce += 1;
        }
        self.hold(holder, nonce, spending);
        nonce
    }

    /// Notes the nonce that a payout has, and what its transaction takes.
    pub(crate) fn hold(&mut self, holder: &str, nonce: u64, spending: Spending) {
        self.held.insert(holder.to_owned(), HeldNonce { nonce, spending });
    }

    /// Notes that a block has a payout's transaction: the account has its coins no more.
    pub(crate) fn mined(&mut self, holder: &str) {
        if let Some(held) = self.held.get_mut(holder) {
            held.spending = Spending::default();
        }
    }

    /// Forgets a payout that has ended, or is somebody else's.
    pub(crate) fn release(&mut self, holder: &str) {
        self.held.remove(holder);
    }

    /// Notes that a nonce is used for good.
    pub(crate) fn used(&mut self, nonce: u64) {
        self.floor = self.floor.max(nonce + 1);
    }

    /// Coins that the account must have for one more transaction.
    pub(crate) fn needed(&self, spending: &Spending) -> Needed {
        let all = |token| {
            let held = self.held.values().map(|held| held.spending.units_of(token));
            held.fold(spending.units_of(token), U256::saturating_add)
        };
        let of_token = |_| all(spending.token);
        Needed { token: spending.token.map_or(U256::ZERO, of_token), native: all(None) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_is_held_by_one_command() {
        let none = Spending::default();
        let mut nonces = Nonces::default();
        nonces.hold("a", 6, none);
        assert_eq!([nonces.take("b", 5, none), nonces.take("c", 5, none)], [5, 7]);
        nonces.release("b");
        assert_eq!(nonces.take("d", 5, none), 5);
        nonces.used(8);
        assert_eq!(
            nonces.take("e", 5, none),
            9,
            "a node that lags behind gives no used nonce again"
        );
    }

    #[test]
    fn coins_on_their_way_are_needed_until_a_block_has_them() {
        let spending = |token: Option<Address>, units: u64, network_fee: u64| Spending {
            token,
            units: U256::from(units),
            network_fee: U256::from(network_fee),
        };
        let needed = |nonces: &Nonces, one: Spending| {
            let Needed { token, native } = nonces.needed(&one);
            [token, native].map(|units| units.to::<u64>())
        };
        let [token, other] = [7, 9].map(Address::repeat_byte).map(Some);
        let mut nonces = Nonces::default();
        nonces.hold("a", 5, spending(None, 8, 1));
        nonces.take("b", 5, spending(token, 30, 2));
        assert_eq!(needed(&nonces, spending(None, 5, 1)), [0, 17]);
        assert_eq!(needed(&nonces, spending(token, 10, 1)), [40, 12]);
        assert_eq!(needed(&nonces, spending(other, 10, 1)), [10, 12]);
        nonces.mined("a");
        assert_eq!(needed(&nonces, spending(None, 5, 1)), [0, 8]);
        nonces.release("b");
        assert_eq!(needed(&nonces, spending(token, 10, 1)), [10, 1]);
    }
}
