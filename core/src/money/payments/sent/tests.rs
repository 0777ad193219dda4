use super::*;

fn named(reference: &str) -> Name {
    Name { connector: "bank".to_owned(), reference: Some(reference.to_owned()) }
}

fn told(reports: &[(PayoutReport, &str, &str)]) -> Vec<bool> {
    let mut sent = Sent::default();
    let moved = reports.iter().map(|(told, connector, reference)| {
        let reference = Some((*reference).to_owned()).filter(|name| !name.is_empty());
        let name = Name { connector: (*connector).to_owned(), reference };
        sent.apply(*told, name, Decimal::ONE);
        sent.has_moved()
    });
    moved.collect()
}

#[test]
fn a_payout_moves_once_whichever_report_of_it_is_first() {
    use PayoutReport::{Begin, End, Return};
    for (reports, moved) in [
        (&[(Begin, "chain", "a"), (End, "chain", "a")][..], &[true, false][..]),
        (&[(End, "chain", "a"), (Begin, "chain", "a")], &[true, false]),
        // Replaced on its way, or told by somebody who names nothing.
        (&[(Begin, "chain", "a"), (End, "chain", "b")], &[true, false]),
        (&[(Begin, "chain", "a"), (End, "manual", "")], &[true, false]),
        (&[(Begin, "chain", "a"), (End, "manual", "b")], &[true, true]),
        (
            &[(Begin, "chain", "a"), (Begin, "chain", "b"), (End, "chain", "b")],
            &[true, true, false],
        ),
        (
            &[(Begin, "chain", "a"), (Return, "chain", "?"), (Return, "chain", "a")],
            &[true, true, false],
        ),
        // It had arrived, and the chain has forgotten it.
        (
            &[
                (Begin, "chain", "a"),
                (End, "chain", "a"),
                (Return, "chain", "a"),
                (Begin, "chain", "b"),
                (End, "chain", "b"),
            ],
            &[true, false, true, true, false],
        ),
        (&[(Return, "chain", "a"), (Begin, "chain", "b")], &[false, true]),
    ] {
        assert_eq!(told(reports), moved, "{reports:?}");
    }
}

#[test]
fn parts_that_were_undone_do_not_come_back_once_more() {
    use PayoutReport::{Begin, Return};
    for (second, undone, moved) in [(40, 100, false), (60, 100, true), (40, 60, true)] {
        let mut sent = Sent::default();
        for (report, reference, amount) in [(Begin, "a", 60), (Begin, "b", second)] {
            sent.apply(report, named(reference), amount.into());
        }
        sent.undo(undone.into());
        sent.apply(Return, named("a"), 60.into());
        assert_eq!(sent.has_moved(), moved, "{undone} of 60 and {second}");
    }
}

#[test]
fn what_was_kept_of_a_payout_that_came_back_comes_back_once() {
    use PayoutReport::{Begin, End, Return};
    let mut sent = Sent::default();
    for (report, reference, amount, moved) in [
        (Begin, "a", 100, true),
        (Return, "a", 95, true),
        (Return, "again", 95, false),
        (Begin, "b", 95, true),
        (End, "b", 95, false),
        (Return, "rest", 5, true),
        (Return, "rest again", 96, true),
    ] {
        sent.apply(report, named(reference), amount.into());
        assert_eq!(sent.has_moved(), moved, "{report:?} {reference}");
    }
    assert!(sent.out.is_empty());
}
