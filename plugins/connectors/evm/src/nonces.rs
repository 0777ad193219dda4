//! Nonces of the account, given out one after the other.

use std::collections::BTreeMap;

/// Nonces of the payouts that this process carries out.
#[derive(Debug, Default)]
pub(crate) struct Nonces {
    /// By the id of the command.
    held: BTreeMap<String, u64>,
    /// Below it every nonce is used for good.
    floor: u64,
}

impl Nonces {
    /// The next free nonce for a command, which holds it from now on. `count` is what the node says.
    pub(crate) fn take(&mut self, command: &str, count: u64) -> u64 {
        let mut nonce = count.max(self.floor);
        while self.held.values().any(|held| *held == nonce) {
            nonce += 1;
        }
        self.hold(command, nonce);
        nonce
    }

    /// Notes the nonce that a command has from an earlier attempt.
    pub(crate) fn hold(&mut self, command: &str, nonce: u64) {
        self.held.insert(command.to_owned(), nonce);
    }

    /// Forgets a command that has ended, or is another process's.
    pub(crate) fn release(&mut self, command: &str) {
        self.held.remove(command);
    }

    /// Notes that a nonce is used for good.
    pub(crate) fn used(&mut self, nonce: u64) {
        self.floor = self.floor.max(nonce + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_is_held_by_one_command() {
        let mut nonces = Nonces::default();
        nonces.hold("a", 6);
        assert_eq!([nonces.take("b", 5), nonces.take("c", 5)], [5, 7]);
        nonces.release("b");
        assert_eq!(nonces.take("d", 5), 5);
        nonces.used(8);
        assert_eq!(nonces.take("e", 5), 9, "a node that lags behind gives no used nonce again");
    }
}
