//! The check of a round: is there an order of its calls that explains every answer?

use std::collections::{BTreeSet, HashSet};
use std::fmt::Debug;
use std::hash::Hash;

/// Most states that a history keeps: beyond it too little is known to go on.
const STATES_MAX: usize = 200_000;

/// A sequential specification.
pub(crate) trait Model: Clone + Debug + Default + Eq + Hash {
    /// A call.
    type Call: Clone + Debug;
    /// An answer.
    type Answer: Clone + Debug;

    /// Every state that the call may leave if it runs alone and is answered so, or with any answer if
    /// nobody heard it. Nothing if that answer is wrong. `beside` is every call that may run at the
    /// same time, for answers that say so.
    fn after(
        &self,
        call: &Self::Call,
        answer: Option<&Self::Answer>,
        beside: &[&Self::Call],
    ) -> Vec<Self>;
}

/// Outcome of a call.
#[derive(Clone, Debug)]
pub(crate) enum Outcome<A> {
    /// It was answered.
    Answered(A),
    /// It failed, and was carried out before or not at all.
    Failed,
    /// Nobody waited for its end: it is carried out soon, or not at all.
    Died,
}

/// A call of a round and what became of it.
pub(crate) type Heard<M> = (<M as Model>::Call, Outcome<<M as Model>::Answer>);

/// Every state that the calls so far may have left.
#[derive(Debug)]
pub(crate) struct History<M: Model> {
    /// States, each with the calls of `unheard` that may take effect yet.
    states: HashSet<(M, BTreeSet<usize>)>,
    /// Calls whose answers nobody heard.
    unheard: Vec<M::Call>,
    /// Those that died in the round before: they may take effect in this one.
    late: BTreeSet<usize>,
}

impl<M: Model> History<M> {
    /// A history in which nothing has happened.
    pub(crate) fn new() -> Self {
        let start = (M::default(), BTreeSet::new());
        Self { states: HashSet::from([start]), unheard: Vec::new(), late: BTreeSet::new() }
    }

    /// Goes on by a round of calls that ran at the same time.
    ///
    /// # Errors
    /// When no order of the calls explains their answers.
    pub(crate) fn round(&mut self, calls: &[Heard<M>]) -> Result<(), String> {
        let before: Vec<M> = self.states.iter().take(3).map(|(state, _)| state.clone()).collect();
        let (mut heard, mut open, mut died) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        for (call, outcome) in calls {
            if let Outcome::Answered(answer) = outcome {
                heard.push((call, answer));
                continue;
            }
            open.insert(self.unheard.len());
            if matches!(outcome, Outcome::Died) {
                died.insert(self.unheard.len());
            }
            self.unheard.push(call.clone());
        }
        let reached = self.reach(&heard, &open)?;
        self.late = died;
        let late = &self.late;
        let kept = |waiting: BTreeSet<usize>| waiting.intersection(late).copied().collect();
        self.states = reached.into_iter().map(|(state, waiting)| (state, kept(waiting))).collect();
        if self.states.is_empty() {
            return Err(format!("no order explains {calls:#?}\nafter {before:#?}"));
        }
        Ok(())
    }

    /// The states at the end of some order of all calls that were heard and any that were not.
    fn reach(
        &self,
        heard: &[(&M::Call, &M::Answer)],
        open: &BTreeSet<usize>,
    ) -> Result<Vec<(M, BTreeSet<usize>)>, String> {
        let every = (1_u32 << heard.len()) - 1;
        let (mut reached, mut ends) = (HashSet::new(), Vec::new());
        let mut left: Vec<(M, BTreeSet<usize>, u32)> = self
            .states
            .iter()
            .map(|(state, waiting)| (state.clone(), waiting.union(open).copied().collect(), 0))
            .collect();
        while let Some(node) = left.pop() {
            if !reached.insert(node.clone()) {
                continue;
            }
            if reached.len() > STATES_MAX {
                return Err("too much stays unknown: the script has too many faults".to_owned());
            }
            let (state, waiting, done) = node;
            for (index, (call, answer)) in heard.iter().enumerate() {
                if done & (1 << index) != 0 {
                    continue;
                }
                let others = heard.iter().enumerate().filter(|(other, _)| *other != index);
                let others = others.map(|(_, (call, _))| *call);
                let beside: Vec<&M::Call> = others.chain(&self.unheard).collect();
                let next = state.after(call, Some(answer), &beside).into_iter();
                left.extend(next.map(|next| (next, waiting.clone(), done | 1 << index)));
            }
            for index in &waiting {
                let mut waiting = waiting.clone();
                waiting.remove(index);
                let next = state.after(&self.unheard[*index], None, &[]).into_iter();
                left.extend(next.map(|next| (next, waiting.clone(), done)));
            }
            if done == every {
                ends.push((state, waiting));
            }
        }
        Ok(ends)
    }

    /// Keeps the states that agree with what was seen.
    ///
    /// # Errors
    /// When none does.
    pub(crate) fn see(
        &mut self,
        seen: &impl Debug,
        agrees: impl Fn(&M) -> bool,
    ) -> Result<(), String> {
        let before: Vec<M> = self.states.iter().take(3).map(|(state, _)| state.clone()).collect();
        self.states.retain(|(state, _)| agrees(state));
        if self.states.is_empty() {
            return Err(format!("the tables show {seen:#?}\nbut the answers say {before:#?}"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A register: a call adds to it and is answered with the sum.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
    struct Sum(u32);

    impl Model for Sum {
        type Call = u32;
        type Answer = u32;

        fn after(&self, call: &u32, answer: Option<&u32>, _: &[&u32]) -> Vec<Self> {
            let sum = self.0 + call;
            if answer.is_none_or(|answer| *answer == sum) { vec![Self(sum)] } else { Vec::new() }
        }
    }

    fn answered(call: u32, answer: u32) -> Heard<Sum> {
        (call, Outcome::Answered(answer))
    }

    #[test]
    fn some_order_must_explain_every_answer() {
        let mut history = History::<Sum>::new();
        history.round(&[answered(1, 3), answered(2, 2)]).unwrap();
        let lost = history.round(&[answered(1, 4), answered(1, 4)]);
        assert!(lost.is_err(), "an update was lost");
    }

    #[test]
    fn a_call_that_nobody_heard_may_take_effect_a_little_later_and_once() {
        let late = |after: &[u32]| {
            let mut history = History::<Sum>::new();
            history.round(&[(5, Outcome::Died), answered(1, 1)]).unwrap();
            after.iter().try_for_each(|sum| history.round(&[answered(1, *sum)]))
        };
        late(&[2, 3]).unwrap();
        late(&[7, 8]).unwrap();
        late(&[2, 8]).unwrap();
        assert!(late(&[2, 3, 9]).is_err(), "long after its end");
        assert!(late(&[12]).is_err(), "twice");
    }

    #[test]
    fn a_call_that_failed_was_carried_out_before_or_not_at_all() {
        let failed = |after: u32| {
            let mut history = History::<Sum>::new();
            history.round(&[(5, Outcome::Failed)]).unwrap();
            history.see(&after, |state| state.0 == after)?;
            history.round(&[answered(1, after + 1)])
        };
        failed(0).unwrap();
        failed(5).unwrap();
        assert!(failed(10).is_err());
    }
}
