//! One row of the table: two measurements, taken in turns, and what their rounds say together.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use rampart_tests::rounds::{Summary, quantile};

use crate::arguments::Arguments;
use crate::processes::Load;

/// Rounds that a row has even when the run is late.
const ROUNDS_MIN: usize = 5;

/// A comparison and its target.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// The letter of the path.
    pub(crate) path: &'static str,
    /// The operation.
    pub(crate) what: &'static str,
    /// The other side of the comparison.
    pub(crate) peer: &'static str,
    /// The quantity that is measured.
    pub(crate) unit: &'static str,
    /// The good direction.
    pub(crate) better: Better,
    /// The arithmetic that makes one figure of two.
    pub(crate) combine: Combine,
    /// The bound that must hold; [`ANY`] where none is set.
    pub(crate) reach: f64,
    /// The bound that is hoped for.
    pub(crate) aim: f64,
    /// True when a quick run leaves it out: what takes minutes by itself, as all that needs the large
    /// database, and what seldom moves alone.
    pub(crate) left_out: bool,
    /// Most rounds: fewer where a round takes long and hardly differs from the others.
    pub(crate) rounds_max: usize,
}

/// The reach of a cost that is only told.
pub(crate) const ANY: f64 = f64::INFINITY;

impl Row {
    /// True when it has a bound that must hold.
    pub(crate) fn has_reach(&self) -> bool {
        self.reach.is_finite()
    }
}

/// The good direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Better {
    /// Costs.
    Lower,
    /// Rates.
    Higher,
}

/// The arithmetic that makes one figure of two measurements of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Combine {
    /// Ours in terms of the peer's.
    Ratio,
    /// Ours less the peer's.
    Difference,
}

/// A measurement that takes about the time it is given.
pub(crate) type Measure<'a> = Box<dyn FnMut(Duration) -> f64 + 'a>;

/// A row and its two sides.
pub(crate) struct Comparison<'a> {
    /// The comparison.
    pub(crate) row: Row,
    /// Rampart.
    pub(crate) ours: Measure<'a>,
    /// The peer.
    pub(crate) peer: Measure<'a>,
}

/// Measurements of both in one round.
struct Round {
    ours: f64,
    theirs: f64,
}

/// A row with its result.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    /// The comparison.
    pub(crate) row: Row,
    /// The ratio or difference over all rounds.
    pub(crate) summary: Summary,
    /// The median of what ours was, in the unit of the measurement.
    pub(crate) ours: f64,
    /// The same of the peer.
    pub(crate) theirs: f64,
    /// Rounds that count.
    pub(crate) rounds: usize,
    /// Rounds that were thrown away because others were busy.
    pub(crate) discarded: usize,
    /// True when rounds had to count although others were busy.
    pub(crate) disturbed: bool,
}

impl Measured {
    /// True when the reach holds with all of the interval.
    pub(crate) fn holds(&self) -> bool {
        let Summary { low, high, .. } = self.summary;
        self.reaches(match self.row.better {
            Better::Lower => high,
            Better::Higher => low,
        })
    }

    /// True when it holds with the median at least.
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
    /// Once it `is_late`, [`ROUNDS_MIN`] are enough, and none is repeated.
    pub(crate) fn run(mut self, arguments: &Arguments, is_late: impl Fn() -> bool) -> Measured {
        let wanted = arguments.rounds().min(self.row.rounds_max);
        let (repeats, time) = (arguments.repeats(wanted), arguments.time());
        let (mut quiet, mut loud) = (Vec::new(), Vec::new());
        // What is cold at first is not measured. Peers have little that can be.
        (self.ours)(time / 2);
        if !arguments.quick {
            (self.peer)(time / 2);
        }
        while quiet.len() < wanted && quiet.len() + loud.len() < wanted + repeats {
            let turn = quiet.len() + loud.len();
            if turn >= ROUNDS_MIN && is_late() {
                break;
            }
            self.show(turn, quiet.last().or(loud.last()));
            let before = Load::now();
            let round = self.round(turn % 2 == 0, time);
            if before.foreign_since().disturbs() { loud.push(round) } else { quiet.push(round) }
        }
        let wanted = wanted.min(quiet.len() + loud.len());
        let missing = wanted - quiet.len();
        let discarded = loud.len() - missing;
        // The latest, so that no choice is made among them.
        quiet.extend(loud.drain(discarded..));
        let of = |figure: fn(&Round) -> f64| quiet.iter().map(figure).collect::<Vec<_>>();
        let median = |figures: Vec<f64>| quantile(&figures, 1, 2).expect("there is a round");
        let figures: Vec<f64> = quiet.iter().map(|round| self.figure(round)).collect();
        let summary = Summary::of(&figures).expect("every round gives a number");
        let (ours, theirs) = (median(of(|round| round.ours)), median(of(|round| round.theirs)));
        let (row, rounds, disturbed) = (self.row, quiet.len(), missing > 0);
        Measured { row, summary, ours, theirs, rounds, discarded, disturbed }
    }

    fn round(&mut self, ours_first: bool, time: Duration) -> Round {
        if ours_first {
            let ours = (self.ours)(time);
            Round { ours, theirs: (self.peer)(time) }
        } else {
            let theirs = (self.peer)(time);
            Round { ours: (self.ours)(time), theirs }
        }
    }

    fn figure(&self, round: &Round) -> f64 {
        match self.row.combine {
            Combine::Ratio => round.ours / round.theirs,
            Combine::Difference => round.ours - round.theirs,
        }
    }

    /// On a terminal, what is going on; in a file it would only be in the way.
    fn show(&self, turn: usize, last: Option<&Round>) {
        let Row { path, what, peer, .. } = self.row;
        let mut out = std::io::stderr();
        if out.is_terminal() {
            let last = last.map_or(String::new(), |round| format!(": {:.2}", self.figure(round)));
            let _ = write!(out, "\r\x1b[K{path} {what} beside {peer}, round {}{last}", turn + 1);
        }
    }
}
