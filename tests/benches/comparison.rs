//! One row of the table: two measurements, taken in turns, and what their rounds say together.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use rampart_tests::rounds::Summary;

use crate::arguments::Arguments;
use crate::processes::Load;

/// What is compared, and how good it should be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// The letter of the path.
    pub(crate) path: &'static str,
    /// What happens on it.
    pub(crate) what: &'static str,
    /// What it is held against.
    pub(crate) peer: &'static str,
    /// What is counted.
    pub(crate) unit: &'static str,
    /// Which way is good.
    pub(crate) better: Better,
    /// How the two become one figure.
    pub(crate) combine: Combine,
    /// What must hold.
    pub(crate) reach: f64,
    /// What we are after.
    pub(crate) aim: f64,
    /// Whether it needs the large database, which takes minutes to make.
    pub(crate) large: bool,
}

/// Which way is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Better {
    /// Costs.
    Lower,
    /// Rates.
    Higher,
}

/// How two measurements of one round become a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Combine {
    /// Ours in terms of the peer's.
    Ratio,
    /// What ours has on top.
    Difference,
}

/// A measurement that takes about the time it is given.
pub(crate) type Measure<'a> = Box<dyn FnMut(Duration) -> f64 + 'a>;

/// A row and its two sides.
pub(crate) struct Comparison<'a> {
    /// What is compared.
    pub(crate) row: Row,
    /// Rampart.
    pub(crate) ours: Measure<'a>,
    /// The peer.
    pub(crate) peer: Measure<'a>,
}

/// A row with its result.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    /// What was compared.
    pub(crate) row: Row,
    /// What the rounds say.
    pub(crate) summary: Summary,
    /// Rounds that count.
    pub(crate) rounds: usize,
    /// Rounds that were thrown away because others were busy.
    pub(crate) discarded: usize,
    /// Whether rounds had to count although others were busy.
    pub(crate) disturbed: bool,
}

impl Measured {
    /// Whether the reach holds with all of the interval.
    pub(crate) fn holds(&self) -> bool {
        let Summary { low, high, .. } = self.summary;
        self.reaches(match self.row.better {
            Better::Lower => high,
            Better::Higher => low,
        })
    }

    /// Whether it holds with the median at least.
    pub(crate) fn middle_holds(&self) -> bool {
        self.reaches(self.summary.middle)
    }

    fn reaches(&self, figure: f64) -> bool {
        match self.row.better {
            Better::Lower => figure <= self.row.reach,
            Better::Higher => figure >= self.row.reach,
        }
    }
}

impl Comparison<'_> {
    /// Runs the rounds: A B, then B A, so that what drifts does not favour one of them. Those in
    /// which others were busy are repeated, and count only when the machine is never left alone.
    pub(crate) fn run(mut self, arguments: &Arguments) -> Measured {
        let (wanted, time) = (arguments.rounds(), arguments.time());
        let (mut quiet, mut loud) = (Vec::new(), Vec::new());
        // What is cold at first is not measured.
        (self.ours)(time / 2);
        (self.peer)(time / 2);
        while quiet.len() < wanted && quiet.len() + loud.len() < wanted + arguments.repeats() {
            let turn = quiet.len() + loud.len();
            self.show(turn, quiet.last().or(loud.last()));
            let before = Load::now();
            let figure = self.round(turn % 2 == 0, time);
            if before.foreign_since().disturbs() { loud.push(figure) } else { quiet.push(figure) }
        }
        let missing = wanted.saturating_sub(quiet.len()).min(loud.len());
        let discarded = loud.len() - missing;
        // The latest, so that no choice is made among them.
        quiet.extend(loud.drain(discarded..));
        let summary = Summary::of(&quiet).expect("every round gives a number");
        let rounds = quiet.len();
        Measured { row: self.row, summary, rounds, discarded, disturbed: missing > 0 }
    }

    fn round(&mut self, ours_first: bool, time: Duration) -> f64 {
        let (ours, peer) = if ours_first {
            let ours = (self.ours)(time);
            (ours, (self.peer)(time))
        } else {
            let peer = (self.peer)(time);
            ((self.ours)(time), peer)
        };
        match self.row.combine {
            Combine::Ratio => ours / peer,
            Combine::Difference => ours - peer,
        }
    }

    /// On a terminal, what is going on; in a file it would only be in the way.
    fn show(&self, turn: usize, last: Option<&f64>) {
        let Row { path, what, peer, .. } = self.row;
        let mut out = std::io::stderr();
        if out.is_terminal() {
            let last = last.map_or(String::new(), |figure| format!(": {figure:.2}"));
            let _ = write!(out, "\r\x1b[K{path} {what} beside {peer}, round {}{last}", turn + 1);
        }
    }
}
