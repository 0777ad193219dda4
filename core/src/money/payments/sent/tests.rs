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
fn a_payout_by_hand_has_left_at_the_connector_that_tells_of_it_afterwards() {
    use PayoutReport::{Begin, End, NamedReturn, Return};
    for (reports, taken) in [
        (
            &[(Begin, "manual", "a"), (Begin, "bank", "a"), (End, "bank", "a")][..],
            &[0_i64, 1, 0][..],
        ),
        (&[(Begin, "manual", "a"), (End, "manual", "a"), (End, "bank", "a")], &[0, 0, 1]),
        (&[(End, "manual", ""), (Begin, "bank", "a"), (End, "bank", "a")], &[0, 1, 0]),
        (&[(Begin, "manual", "a"), (Return, "bank", "a")], &[0, 1]),
        (&[(Begin, "manual", "a"), (NamedReturn, "bank", "a")], &[0, 1]),
        (&[(Begin, "manual", "a"), (Return, "bank", "b")], &[0, 0]),
        (&[(Begin, "manual", "a"), (Begin, "bank", "b")], &[0, 0]),
        (&[(Begin, "bank", "a"), (Begin, "manual", "a"), (End, "bank", "a")], &[0, 0, 0]),
    ] {
        let mut sent = Sent::default();
        let each = reports.iter().map(|(report, connector, reference)| {
            let reference = Some((*reference).to_owned()).filter(|name| !name.is_empty());
            let name = Name { connector: (*connector).to_owned(), reference };
            sent.apply(*report, name, Decimal::ONE);
            sent.moved_from_hand()
        });
        let each: Vec<Decimal> = each.collect();
        let taken: Vec<Decimal> = taken.iter().map(|taken| Decimal::from(*taken)).collect();
        assert_eq!(each, taken, "{reports:?}");
    }
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
        // Told by somebody who names nothing, before its provider did.
        (&[(Begin, "chain", "a"), (End, "manual", ""), (End, "chain", "a")], &[true, false, false]),
        (&[(Begin, "chain", "a"), (End, "manual", ""), (End, "chain", "b")], &[true, false, false]),
        (&[(Begin, "chain", "a"), (End, "manual", ""), (End, "bank", "b")], &[true, false, true]),
        (&[(End, "manual", ""), (Begin, "chain", "a"), (End, "chain", "a")], &[true, false, false]),
        // Told by its name by two.
        (
            &[(Begin, "manual", "a"), (Begin, "chain", "a"), (End, "chain", "a")],
            &[true, false, false],
        ),
        (
            &[(Begin, "chain", "a"), (End, "manual", "a"), (End, "chain", "a")],
            &[true, false, false],
        ),
        (
            &[(End, "manual", "a"), (End, "chain", "a"), (Begin, "chain", "a")],
            &[true, false, false],
        ),
        (&[(Begin, "chain", "a"), (End, "manual", "b"), (End, "chain", "b")], &[true, true, false]),
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
        // The chain has taken up again what it had forgotten: both have arrived.
        (
            &[
                (Begin, "chain", "a"),
                (Return, "chain", "a"),
                (Begin, "chain", "b"),
                (End, "chain", "a"),
                (End, "chain", "b"),
            ],
            &[true, true, true, false, true],
        ),
        (&[(Return, "chain", "a"), (Begin, "chain", "b")], &[false, true]),
    ] {
        assert_eq!(told(reports), moved, "{reports:?}");
    }
}

#[test]
fn an_end_is_of_the_part_that_has_none() {
    use PayoutReport::{Begin, End};
    let by_hand = Name { connector: "manual".to_owned(), reference: None };
    let mut sent = Sent::default();
    for (report, name, amount, moved) in [
        (Begin, named("a"), 60, true),
        (End, by_hand, 60, false),
        (Begin, named("b"), 40, true),
        // The transaction of the second part was replaced.
        (End, named("c"), 40, false),
    ] {
        sent.apply(report, name, amount.into());
        assert_eq!(sent.has_moved(), moved, "{report:?} of {amount}");
    }
    assert!(sent.out.iter().all(|part| part.end.is_some()), "{:?}", sent.out);
    // Told by hand before its connector did, it is told once more.
    sent.apply(End, named("a"), 60.into());
    assert!(!sent.has_moved());
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

#[test]
fn what_was_kept_comes_back_in_parts_and_once() {
    use PayoutReport::{Begin, Return};
    for returns in [
        &[("rest", 5, true), ("again", 5, false)][..],
        &[("part", 2, true), ("other part", 3, true), ("more", 1, false)],
        &[("more", 7, true), ("more again", 7, false)],
        &[("part", 2, true), ("more", 4, true), ("more again", 4, false)],
        // What came back by another name, and as all that had left.
        &[("again", 95, false), ("all", 100, false), ("rest", 5, true)],
    ] {
        let mut sent = Sent::default();
        sent.apply(Begin, named("a"), 100.into());
        sent.apply(Return, named("a"), 95.into());
        for &(reference, amount, moved) in returns {
            sent.apply(Return, named(reference), amount.into());
            assert_eq!(sent.has_moved(), moved, "{reference} of {returns:?}");
        }
    }
}

#[test]
fn what_was_kept_comes_back_after_what_was_sent_again_is_undone() {
    use PayoutReport::{Begin, Return};
    for returns in [
        &[("rest", 5, true), ("b", 95, false)][..],
        &[("b", 5, false), ("rest", 5, true)],
        // May be a part of the one that was undone.
        &[("more", 7, false)],
    ] {
        let mut sent = Sent::default();
        for (report, reference, amount) in [(Begin, "a", 100), (Return, "a", 95), (Begin, "b", 95)]
        {
            sent.apply(report, named(reference), amount.into());
        }
        assert_eq!(sent.kept(), Decimal::from(5));
        sent.undo(95.into());
        for &(reference, amount, moved) in returns {
            sent.apply(Return, named(reference), amount.into());
            assert_eq!(sent.has_moved(), moved, "{reference} of {returns:?}");
        }
    }
}

#[test]
fn an_earlier_refund_has_undone_what_was_kept_as_well() {
    use PayoutReport::{Begin, Return};
    let mut sent = Sent::default();
    sent.apply(Begin, named("a"), 100.into());
    sent.apply(Return, named("a"), 95.into());
    sent.undo(5.into());
    sent.apply(Return, named("rest"), 5.into());
    assert!(!sent.has_moved());
}

#[test]
fn returns_with_references_of_their_own_are_of_the_payout_that_they_name() {
    use PayoutReport::{Begin, NamedReturn, Return};
    for (reports, left) in [
        // As much as each of them says, however much has left.
        (
            &[(Begin, "a", 100, true), (NamedReturn, "a", 60, true), (NamedReturn, "a", 60, true)]
                [..],
            0,
        ),
        (
            &[(Begin, "a", 100, true), (NamedReturn, "a", 95, true), (NamedReturn, "a", 100, true)],
            0,
        ),
        (
            &[
                (Begin, "a", 100, true),
                (NamedReturn, "a", 100, true),
                (Begin, "b", 100, true),
                (NamedReturn, "a", 2, true),
            ],
            100,
        ),
        // Somebody else has told of the same money.
        (&[(Begin, "a", 100, true), (Return, "hand", 95, true), (NamedReturn, "a", 95, false)], 5),
        (
            &[
                (Begin, "a", 100, true),
                (Return, "hand", 100, true),
                (Begin, "b", 100, true),
                (NamedReturn, "a", 100, false),
            ],
            100,
        ),
        (&[(NamedReturn, "a", 100, false), (Begin, "a", 100, true)], 100),
    ] {
        let mut sent = Sent::default();
        for &(report, reference, amount, moved) in reports {
            sent.apply(report, named(reference), amount.into());
            assert_eq!(sent.has_moved(), moved, "{report:?} {reference} {amount} of {reports:?}");
        }
        let out: Decimal = sent.out.iter().map(|payout| payout.amount).sum();
        assert_eq!(out, Decimal::from(left), "{reports:?}");
    }
}

#[test]
fn a_return_of_what_was_undone_moves_nothing_by_any_reference() {
    use PayoutReport::{Begin, NamedReturn};
    let mut sent = Sent::default();
    for (report, reference, amount) in [(Begin, "a", 100), (NamedReturn, "a", 95), (Begin, "b", 95)]
    {
        sent.apply(report, named(reference), amount.into());
    }
    sent.undo(95.into());
    for (reference, amount, moved) in [("b", 95, false), ("a", 5, true)] {
        sent.apply(NamedReturn, named(reference), amount.into());
        assert_eq!(sent.has_moved(), moved, "{reference} {amount}");
    }
}

#[test]
fn a_return_without_a_reference_of_its_own_is_repeated_as_far_as_it_has_moved() {
    use PayoutReport::{Begin, NamedReturn, Return};
    for reports in [
        // It repeats the first one itself.
        &[
            (Begin, "a", 100, true),
            (NamedReturn, "a", 95, true),
            (Return, "hand", 95, false),
            (NamedReturn, "a", 95, true),
        ][..],
        &[
            (Begin, "a", 100, true),
            (Return, "hand", 95, true),
            (NamedReturn, "a", 95, false),
            (NamedReturn, "a", 95, true),
        ],
        &[
            (Begin, "a", 100, true),
            (Return, "hand", 100, true),
            (NamedReturn, "a", 95, false),
            (NamedReturn, "a", 95, false),
            (NamedReturn, "a", 95, true),
        ],
        // One of a payout that is not known repeats none.
        &[
            (Begin, "a", 100, true),
            (Return, "hand", 100, true),
            (NamedReturn, "c", 100, false),
            (NamedReturn, "a", 100, false),
        ],
    ] {
        let mut sent = Sent::default();
        for &(report, reference, amount, moved) in reports {
            sent.apply(report, named(reference), amount.into());
            assert_eq!(sent.has_moved(), moved, "{report:?} {reference} {amount} of {reports:?}");
        }
    }
}

#[test]
fn a_return_of_what_was_undone_repeats_none_of_another_payout() {
    use PayoutReport::{Begin, NamedReturn, Return};
    let mut sent = Sent::default();
    for (report, reference, amount) in [(Begin, "b", 60), (Begin, "a", 60), (Return, "hand", 60)] {
        sent.apply(report, named(reference), amount.into());
    }
    sent.undo(60.into());
    for reference in ["b", "a"] {
        sent.apply(NamedReturn, named(reference), 60.into());
        assert!(!sent.has_moved(), "{reference}");
    }
}

#[test]
fn a_return_that_is_told_again_is_not_of_what_was_sent_since() {
    use PayoutReport::{Begin, NamedReturn, Return};
    for reports in [
        // An operator was first to tell of it.
        &[
            (Begin, "a", 100, true),
            (Return, "hand", 95, true),
            (Begin, "b", 95, true),
            (NamedReturn, "a", 95, false),
        ][..],
        &[
            (Begin, "a", 100, true),
            (Return, "a", 100, true),
            (Begin, "b", 100, true),
            (Return, "a", 100, false),
        ],
        &[
            (Begin, "a", 100, true),
            (Return, "a", 95, true),
            (Begin, "b", 95, true),
            (Return, "a", 95, false),
        ],
    ] {
        let mut sent = Sent::default();
        for &(report, reference, amount, moved) in reports {
            sent.apply(report, named(reference), amount.into());
            assert_eq!(sent.has_moved(), moved, "{report:?} {reference} {amount} of {reports:?}");
        }
    }
}
