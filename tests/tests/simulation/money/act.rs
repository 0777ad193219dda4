//! Acts: what may happen to an order, as data that a seed decides.

use super::dice::Dice;

/// An act on an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// Time for the providers.
    Nothing,
    /// A provider reports.
    Report(Report),
    /// An earlier report comes again.
    Again(u8, Again),
    /// An operator's event of the order.
    Event(&'static str),
    /// An operator gives a payment of the order back, all of it or a half.
    GiveBack(u8, bool),
    /// An operator matches a payment that was reported under this reference.
    Match(u8),
    /// An operator records what was done by hand: a step of the payout of so many hundredths. The last
    /// of the three payouts is of another currency.
    ByHand(Step, u8, u16),
    /// An operator records that so many hundredths were given back by hand.
    RefundByHand(u8, u16),
}

/// A report of money.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) kind: Kind,
    /// Number of its reference among those of the order.
    pub(crate) reference: u8,
    /// Hundredths of what is due.
    pub(crate) part: u16,
    pub(crate) is_other_currency: bool,
    pub(crate) names: Names,
    /// Another provider than the order's reports it.
    pub(crate) is_by_other: bool,
}

/// Kind of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Money for a purchase, coins for a sale.
    Arrived,
    Failed,
    Refunded,
    Disputed,
    DisputeWon,
    DisputeLost,
}

/// The order that a report names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    Order,
    Nobody,
    /// The order, and another partner.
    OtherTenant,
    /// An order that there is not.
    Unknown,
}

/// The way in which a report comes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    Same,
    OtherId,
    /// Another amount under the same id: refused.
    OtherBody,
    /// Another amount under another id and the same reference.
    OtherAmount,
}

/// A step of a payout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Sent,
    Arrived,
    Failed,
}

const EVENTS: [&str; 10] = [
    "hold",
    "hold",
    "release",
    "release",
    "release",
    "cancel",
    "refund",
    "payment-received",
    "payment-denied",
    "coins-sent",
];
const PARTS: [u16; 9] = [100, 100, 100, 100, 100, 100, 50, 130, 99];

fn report(dice: &mut Dice, kind: Kind) -> Act {
    let is_arrival = kind == Kind::Arrived;
    let names =
        [(85, Names::Order), (6, Names::Nobody), (4, Names::OtherTenant), (5, Names::Unknown)];
    Act::Report(Report {
        kind,
        reference: u8::try_from(dice.below(3)).unwrap_or(0),
        part: dice.pick(&PARTS),
        is_other_currency: is_arrival && dice.chance(5),
        names: if is_arrival { dice.weigh(&names) } else { Names::Order },
        is_by_other: is_arrival && dice.chance(8),
    })
}

fn act(dice: &mut Dice) -> Act {
    let number = |dice: &mut Dice| u8::try_from(dice.below(3)).unwrap_or(0);
    match dice.below(100) {
        0..32 => Act::Nothing,
        32..50 => report(dice, Kind::Arrived),
        50..57 => {
            let how = [Again::Same, Again::OtherId, Again::OtherBody, Again::OtherAmount];
            Act::Again(number(dice), dice.pick(&how))
        }
        57..59 => report(dice, Kind::Failed),
        59..61 => report(dice, Kind::Refunded),
        61..64 => report(dice, Kind::Disputed),
        64..66 => {
            let end = dice.pick(&[Kind::DisputeWon, Kind::DisputeLost]);
            report(dice, end)
        }
        66..84 => Act::Event(dice.pick(&EVENTS)),
        84..89 => Act::GiveBack(number(dice), dice.chance(30)),
        89..93 => Act::Match(number(dice)),
        93..98 => {
            let step = dice.weigh(&[(2, Step::Sent), (2, Step::Arrived), (1, Step::Failed)]);
            Act::ByHand(step, number(dice), dice.pick(&[100, 100, 50]))
        }
        _ => Act::RefundByHand(number(dice), dice.pick(&PARTS)),
    }
}

/// The acts on an order: most are paid early and as they should be, so that the rest of their way is
/// seen as well.
pub(crate) fn script(seed: u64, order: u64, acts: usize) -> Vec<Act> {
    let mut dice = Dice::named(seed, "script", &[order]);
    let mut script: Vec<Act> = (0..acts).map(|_| act(&mut dice)).collect();
    if dice.chance(60) {
        let place = dice.below(acts.min(4));
        script[place] = Act::Report(Report {
            kind: Kind::Arrived,
            reference: 0,
            part: 100,
            is_other_currency: false,
            names: Names::Order,
            is_by_other: false,
        });
        // Some are left to their providers for a while.
        if dice.chance(60) {
            let end = acts.min(place + 1 + dice.below(12));
            script[place + 1..end].fill(Act::Nothing);
        }
    }
    script
}
