//! Lines that a statement or the books have alone.

use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

use super::statements::{camt, credit, reconcile_at};
use super::{pay, problems};

/// Lays these lines of a statement beside the books of what operators have booked.
async fn reconcile(context: &TestContext, lines: &str) -> Value {
    let statement = format!("date,amount,currency,providerReference\n{lines}");
    reconcile_at(context, "/admin/v1/reconciliations?connector=manual", &statement).await
}

/// The differences of a reconciliation, as `side reference amount`.
fn differences(made: &Value) -> Vec<String> {
    let text = |difference: &Value| {
        let name = |name: &str| difference[name].as_str().unwrap();
        format!("{} {} {}", name("side"), name("providerReference"), difference["amount"])
    };
    made["differences"].as_array().unwrap().iter().map(text).collect()
}

#[tokio::test]
async fn money_by_the_books_alone_is_told_where_the_statement_has_its_currency() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    for (reference, currency) in [("in-eur", "EUR"), ("in-usd", "USD")] {
        let paid = json!({"currency": currency, "occurredAt": "2026-03-01T09:00:00Z"});
        pay(&context, reference, paid).await.assert_status(201);
    }
    let euros = "2026-03-01,1,EUR,other-eur\n";
    let made = reconcile(&context, euros).await;
    assert_eq!(differences(&made), ["books in-eur 100"], "dollars have an account of their own");
    let made = reconcile(&context, &format!("{euros}2026-03-01,1,USD,other-usd\n")).await;
    assert_eq!(differences(&made), ["books in-eur 100", "books in-usd 100"]);
}

#[tokio::test]
async fn a_payment_that_was_given_back_or_taken_before_it_is_recorded_by_its_own_line() {
    for kind in ["refunded", "disputed"] {
        let context = TestContext::start().await;
        context.partner("acme").await;
        let told = json!({"kind": kind, "occurredAt": "2026-03-02T09:00:00Z"});
        pay(&context, kind, told).await.assert_status(201);
        let lines = format!("2026-03-01,100,EUR,{kind}\n2026-03-02,-100,EUR,{kind}\n");
        for (matched, recorded) in [(1, 1), (2, 0)] {
            let made = reconcile(&context, &lines).await;
            let seen = (&made["matched"], &made["recorded"]);
            assert_eq!(seen, (&json!(matched), &json!(recorded)), "{kind}");
            assert_eq!(made["differences"], json!([]), "{kind}");
        }
    }
}

#[tokio::test]
async fn a_payment_whose_dispute_was_won_before_it_is_recorded_by_its_own_line() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    for (kind, day) in [("disputed", 2), ("dispute-won", 3)] {
        let told = json!({"kind": kind, "occurredAt": format!("2026-03-0{day}T09:00:00Z")});
        pay(&context, "bank-1", told).await.assert_status(201);
    }
    let lines = "2026-03-03,100,EUR,bank-1\n2026-03-02,-100,EUR,bank-1\n";
    let made = reconcile(&context, lines).await;
    assert_eq!((&made["matched"], &made["recorded"]), (&json!(2), &json!(0)));
    let lines = format!("2026-03-01,100,EUR,bank-1\n{lines}");
    for (matched, recorded) in [(2, 1), (3, 0)] {
        let made = reconcile(&context, &lines).await;
        let seen = (&made["matched"], &made["recorded"]);
        assert_eq!(seen, (&json!(matched), &json!(recorded)));
        assert_eq!(made["differences"], json!([]));
    }
}

#[tokio::test]
async fn the_end_of_a_dispute_of_the_same_day_is_no_payment() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    for (kind, hour) in [("disputed", 9), ("dispute-won", 15)] {
        let told = json!({"kind": kind, "occurredAt": format!("2026-03-02T{hour:02}:00:00Z")});
        pay(&context, "bank-1", told).await.assert_status(201);
    }
    let lines = "2026-03-02,100,EUR,bank-1\n2026-03-02,-100,EUR,bank-1\n";
    let made = reconcile(&context, lines).await;
    assert_eq!((&made["matched"], &made["recorded"]), (&json!(2), &json!(0)));
    assert_eq!(made["differences"], json!([]));
}

/// Lays a statement of the account with this IBAN, which has one entry, beside the same books.
async fn reconcile_account(context: &TestContext, iban: &str, entry: String) -> Value {
    let account = format!("<Stmt><Acct><Id><IBAN>{iban}</IBAN></Id></Acct>");
    let statement = camt(&[entry]).replace("<Stmt>", &account);
    reconcile_at(context, "/admin/v1/reconciliations?connector=manual", &statement).await
}

/// The references of what is open of accounts at providers.
async fn open(context: &TestContext) -> Vec<String> {
    let found = problems(context).await;
    let reference = |found: &Value| {
        let text = found["problem"].as_str().unwrap();
        text.split_whitespace().next().unwrap().to_owned()
    };
    found.iter().map(reference).collect()
}

#[tokio::test]
async fn a_statement_of_one_account_hides_no_difference_of_another() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    reconcile(&context, "2026-03-01,-5,EUR,fee-eur\n").await;
    reconcile(&context, "2026-03-01,-5,USD,fee-usd\n").await;
    assert_eq!(open(&context).await, ["fee-eur", "fee-usd"]);
    reconcile(&context, "2026-03-01,-6,EUR,rent-eur\n").await;
    assert_eq!(open(&context).await, ["fee-usd", "rent-eur"], "the last one of each");

    let of = async |iban: &str, reference: &str| {
        let debit = credit(reference, "").replace("CRDT", "DBIT");
        reconcile_account(&context, iban, debit).await
    };
    of("NL02ABNA0123456789", "one-1").await;
    of("NL58ABNA0000000001", "other-1").await;
    // What no account is named of may have been of any.
    assert_eq!(open(&context).await, ["fee-usd", "one-1", "other-1"]);
    of("NL02ABNA0123456789", "one-2").await;
    assert_eq!(open(&context).await, ["fee-usd", "one-2", "other-1"]);
    reconcile(&context, "2026-03-01,0,EUR,notice\n").await;
    assert_eq!(open(&context).await, ["fee-usd"], "it is of any account in euros");
}

#[tokio::test]
async fn a_payment_that_another_statement_has_is_not_in_the_books_alone() {
    // Another account in the currency at the connector, or another page of one statement.
    for other in ["NL58ABNA0000000001", "NL02ABNA0123456789"] {
        let context = TestContext::start().await;
        context.partner("acme").await;
        for reference in ["one", "two", "nowhere"] {
            let paid = json!({"occurredAt": "2026-03-01T09:00:00Z"});
            pay(&context, reference, paid).await.assert_status(201);
        }
        let of = async |iban: &str, reference: &str| {
            differences(&reconcile_account(&context, iban, credit(reference, "")).await)
        };
        let first = of("NL02ABNA0123456789", "one").await;
        assert_eq!(first, ["books two 100", "books nowhere 100"], "nobody has read the other");
        assert_eq!(of(other, "two").await, ["books nowhere 100"], "{other}");
        assert!(!open(&context).await.contains(&"two".to_owned()), "{other}");
        assert_eq!(of("NL02ABNA0123456789", "one").await, ["books nowhere 100"], "{other}");

        // The payment stands on a statement, and that it was given back on none.
        let back = json!({"kind": "refunded", "occurredAt": "2026-03-02T09:00:00Z"});
        pay(&context, "one", back).await.assert_status(201);
        let made = reconcile(&context, "2026-03-02,1,EUR,other\n").await;
        assert_eq!(differences(&made), ["books one -100"], "{other}");
    }
}

#[tokio::test]
async fn equal_entries_with_numbers_of_their_own_are_as_many_payments() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let numbered = |number: u8| {
        let number = format!("<NtryRef>{number}</NtryRef><AcctSvcrRef>");
        credit("bank-1", "").replace("<AcctSvcrRef>", &number)
    };
    let statement = camt(&[1, 2].map(numbered));
    for (matched, recorded) in [(0, 2), (2, 0)] {
        let path = "/admin/v1/reconciliations?connector=manual";
        let made = reconcile_at(&context, path, &statement).await;
        let seen = (&made["matched"], &made["recorded"]);
        assert_eq!(seen, (&json!(matched), &json!(recorded)));
        assert_eq!(made["differences"], json!([]));
    }
}

#[tokio::test]
async fn equal_entries_without_a_name_of_two_accounts_are_two_payments() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    for iban in ["NL02ABNA0123456789", "NL58ABNA0000000001"] {
        for (matched, recorded) in [(0, 1), (1, 0)] {
            let made = reconcile_account(&context, iban, credit("NONREF", "")).await;
            let seen = (&made["matched"], &made["recorded"]);
            assert_eq!(seen, (&json!(matched), &json!(recorded)), "{iban}");
            assert_eq!(made["differences"], json!([]), "{iban}");
        }
    }
}
