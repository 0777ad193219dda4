//! Turns of partners: of work that a partner's staff may ask for, one at a time runs on an edge, so
//! that no partner takes the places of others.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use rampart_types::ClientId;

/// Partners whose turn it is.
#[derive(Debug, Default)]
pub(crate) struct PartnerTurns(Arc<Mutex<HashSet<ClientId>>>);

impl PartnerTurns {
    /// The partner's turn, which ends when it is dropped; `None` while it has one.
    pub(crate) fn take(&self, partner: ClientId) -> Option<Turn> {
        let is_free = self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(partner);
        is_free.then(|| Turn { turns: Arc::clone(&self.0), partner })
    }
}

/// A turn of a partner.
#[derive(Debug)]
pub(crate) struct Turn {
    turns: Arc<Mutex<HashSet<ClientId>>>,
    partner: ClientId,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.partner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partner_has_one_turn_and_leaves_the_others_theirs() {
        let turns = PartnerTurns::default();
        let [acme, rival] = [1, 2].map(|number| ClientId::from(uuid::Uuid::from_u128(number)));
        let turn = turns.take(acme);
        assert!(turn.is_some() && turns.take(acme).is_none());
        assert!(turns.take(acme).is_none(), "a refused one ends no turn");
        assert!(turns.take(rival).is_some());
        drop(turn);
        assert!(turns.take(acme).is_some());
    }
}
