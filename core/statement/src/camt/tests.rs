//! Entries and documents, as banks and others send them.

use super::*;
use crate::NO_REFERENCE;

fn statement(entries: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?><Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:camt.053.001.08\">\
         <BkToCstmrStmt><Stmt><Id>1</Id>{entries}</Stmt></BkToCstmrStmt></Document>"
    )
}

const ENTRY: &str = "<Ntry><Amt Ccy=\"EUR\">250.00</Amt><CdtDbtInd>CRDT</CdtDbtInd>\
    <Sts><Cd>BOOK</Cd></Sts><BookgDt><Dt>2026-03-01</Dt></BookgDt><AcctSvcrRef>bank-1</AcctSvcrRef>\
    <NtryDtls><TxDtls><Refs><EndToEndId>NOTPROVIDED</EndToEndId></Refs>\
    <RltdPties><Dbtr><Pty><Nm>A. Lovelace &amp; Co</Nm></Pty></Dbtr>\
    <DbtrAcct><Id><IBAN>NL58ABNA0000000001</IBAN></Id></DbtrAcct></RltdPties>\
    <RmtInf><Ustrd>order 1234567890123456</Ustrd></RmtInf></TxDtls></NtryDtls></Ntry>";

#[test]
fn a_booked_entry_is_a_line() {
    let pending = ENTRY.replace("BOOK", "PDNG");
    let debit = ENTRY.replace("CRDT", "DBIT").replace("bank-1", "bank-2");
    let lines = read(&statement(&format!("{ENTRY}{pending}{debit}"))).unwrap();
    let expected = Line {
        date: NaiveDate::from_ymd_opt(2026, 3, 1),
        amount: Decimal::from(250),
        currency: "EUR".to_owned(),
        reference: "order 1234567890123456".to_owned(),
        provider_reference: "bank-1".to_owned(),
        name: "A. Lovelace & Co".to_owned(),
        iban: "NL58ABNA0000000001".to_owned(),
        ..Line::default()
    };
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!(lines[0], expected);
    assert_eq!(lines[1].amount, Decimal::from(-250));
}

#[test]
fn a_returned_transfer_names_itself_the_reason_and_the_account() {
    let returned = ENTRY.replace("NOTPROVIDED", "T0199").replace(
        "<RmtInf>",
        "<RtrInf><Rsn><Cd>AC04</Cd></Rsn><AddtlInf>closed</AddtlInf></RtrInf><RmtInf>",
    );
    let bare = returned.replace("<Rsn><Cd>AC04</Cd></Rsn>", "");
    let reversed = ENTRY.replace("<Sts>", "<RvslInd>true</RvslInd><Sts>");
    let account = "<Acct><Id><IBAN>NL02ABNA0123456789</IBAN></Id></Acct>";
    let lines = read(&statement(&format!("{account}{ENTRY}{returned}{bare}{reversed}")));
    let lines = lines.unwrap();
    let reasons: Vec<_> = lines.iter().map(|line| &*line.return_reason).collect();
    assert_eq!(reasons, ["", "AC04", "NARR", "reversal"]);
    assert_eq!((&*lines[0].end_to_end_id, &*lines[1].end_to_end_id), ("", "T0199"));
    assert!(lines.iter().all(|line| line.account == "NL02ABNA0123456789"));
}

#[test]
fn a_transfer_that_the_bank_books_as_a_return_is_one() {
    let code = |code: &str| {
        format!(
            "<BkTxCd><Domn><Cd>PMNT</Cd><Fmly><Cd>RCDT</Cd><SubFmlyCd>{code}</SubFmlyCd></Fmly>\
             </Domn></BkTxCd>"
        )
    };
    let reason = "<RtrInf><Rsn><Cd>AC04</Cd></Rsn></RtrInf>";
    for (of_entry, of_transaction, expected) in [
        (code("ESCT"), code("ESCT"), ""),
        (code("RRTN"), String::new(), "NARR"),
        (String::new(), code("RPCR"), "NARR"),
        (code("RRTN"), code("RRTN") + reason, "AC04"),
    ] {
        let text = ENTRY
            .replace("<NtryDtls>", &format!("{of_entry}<NtryDtls>"))
            .replace("</TxDtls>", &format!("{of_transaction}</TxDtls>"));
        let lines = read(&statement(&text)).unwrap();
        assert_eq!(lines[0].return_reason, expected, "{of_entry} {of_transaction}");
    }
}

#[test]
fn several_transactions_of_an_entry_are_lines_of_their_own() {
    let details = |name: &str, amount: &str| {
        format!(
            "<TxDtls><Refs><AcctSvcrRef>{name}</AcctSvcrRef></Refs>\
             <Amt Ccy=\"EUR\">{amount}</Amt></TxDtls>"
        )
    };
    let entry = format!(
        "<Ntry><Amt Ccy=\"EUR\">300</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts>BOOK</Sts>\
         <NtryDtls>{}{}</NtryDtls></Ntry>",
        details("a", "100"),
        details("b", "200")
    );
    let lines = read(&statement(&entry)).unwrap();
    let seen: Vec<_> = lines.iter().map(|l| (&*l.provider_reference, l.amount)).collect();
    assert_eq!(seen, [("a", Decimal::from(100)), ("b", Decimal::from(200))]);
}

#[test]
fn a_name_that_a_batch_gives_to_all_of_its_transactions_is_none_of_theirs() {
    let details = |name: &str, text: &str| {
        format!(
            "<TxDtls><Refs><AcctSvcrRef>{name}</AcctSvcrRef></Refs><Amt Ccy=\"EUR\">100</Amt>\
             <RmtInf><Ustrd>{text}</Ustrd></RmtInf></TxDtls>"
        )
    };
    let entry = format!(
        "<Ntry><Amt Ccy=\"EUR\">400</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts>BOOK</Sts>\
         <AcctSvcrRef>batch</AcctSvcrRef><NtryDtls>{}{}{}{}</NtryDtls></Ntry>",
        details("batch", "one"),
        details("batch", "two"),
        details("batch", "two"),
        details("own", "1234567890123456")
    );
    let lines = crate::read(statement(&entry).as_bytes()).unwrap();
    let names: std::collections::HashSet<_> =
        lines.iter().map(|line| &*line.provider_reference).collect();
    assert_eq!((lines.len(), names.len()), (4, 4), "{names:?}");
    assert!(names.contains("own") && !names.contains("batch"), "{names:?}");
    assert_eq!(lines[0].earlier_references, ["batch"]);
    assert!(lines[3].earlier_references.is_empty());
    assert_eq!(lines[3].order_digits().as_deref(), Some("1234567890123456"));
}

#[test]
fn entries_that_a_bank_has_named_alike_are_told_apart_by_their_numbers() {
    let numbered = |number: &str| {
        ENTRY.replace("<AcctSvcrRef>", &format!("<NtryRef>{number}</NtryRef><AcctSvcrRef>"))
    };
    let names = |entries: &[String]| {
        let lines = crate::read(statement(&entries.concat()).as_bytes()).unwrap();
        assert!(lines.iter().all(|line| line.earlier_references.is_empty()), "{lines:?}");
        lines.into_iter().map(|line| line.provider_reference).collect::<Vec<_>>()
    };
    let three = ["bank-1", "bank-1#2", "bank-1#3"];
    assert_eq!(names(&["1", "2", "3"].map(numbered)), three);
    assert_eq!(names(&["7", "8", "9"].map(numbered)), three, "in a statement of another period");
    // The bank may have listed one payment twice.
    for entries in [["1", "1"].map(numbered), [ENTRY.to_owned(), numbered("2")]] {
        assert_eq!(names(&entries), ["bank-1", "bank-1"]);
    }
    let of_another_amount = numbered("2").replace("250.00", "20.00");
    assert_eq!(names(&[numbered("1"), of_another_amount]), ["bank-1", "bank-1"]);
    let other = numbered("1") + "</Stmt><Stmt>" + &numbered("2");
    assert_eq!(names(&[other]), ["bank-1", "bank-1"], "in two statements it may be one");
}

#[test]
fn of_transactions_that_do_not_say_how_much_they_are_none_is_the_whole() {
    let (euros, dollars) = ("<Amt Ccy=\"EUR\">100</Amt>", "<Amt Ccy=\"USD\">110</Amt>");
    let in_both = format!("{euros}<AmtDtls><TxAmt>{dollars}</TxAmt></AmtDtls>");
    let seen = |amounts: [&str; 2]| {
        let details = |name: &str, amount: &str| {
            format!("<TxDtls><Refs><AcctSvcrRef>{name}</AcctSvcrRef></Refs>{amount}</TxDtls>")
        };
        let entry = format!(
            "<Ntry><Amt Ccy=\"EUR\">200</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts>BOOK</Sts>\
             <AcctSvcrRef>whole</AcctSvcrRef><NtryDtls>{}{}</NtryDtls>\
             <AddtlNtryInf>1234567890123456 and others</AddtlNtryInf></Ntry>",
            details("a", amounts[0]),
            details("b", amounts[1])
        );
        let lines = read(&statement(&entry)).unwrap();
        assert!(lines.iter().all(|line| line.currency == "EUR"), "{lines:?}");
        assert_eq!(lines.iter().map(|line| line.amount).sum::<Decimal>(), Decimal::from(200));
        lines
    };
    for amounts in [["", ""], [euros, ""], [euros, dollars]] {
        let lines = seen(amounts);
        assert_eq!((lines.len(), &*lines[0].provider_reference), (1, "whole"), "{amounts:?}");
        assert_eq!(lines[0].earlier_references, ["a", "b"]);
        assert_eq!(lines[0].order_digits(), None, "of one of two");
    }
    assert_eq!(seen([&in_both, euros]).len(), 2);
}

#[test]
fn what_transactions_are_not_of_an_entrys_amount_is_a_line() {
    let seen = |whole: &str, parts: [(&str, &str); 2]| -> Vec<(String, String)> {
        let details = parts.map(|(amount, side)| {
            format!(
                "<TxDtls><Refs><AcctSvcrRef>{amount}</AcctSvcrRef></Refs>\
                 <Amt Ccy=\"EUR\">{amount}</Amt><CdtDbtInd>{side}</CdtDbtInd></TxDtls>"
            )
        });
        let entry = format!(
            "<Ntry><Amt Ccy=\"EUR\">{whole}</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts>BOOK</Sts>\
             <AcctSvcrRef>whole</AcctSvcrRef><Chrgs><Rcrd><Amt Ccy=\"EUR\">1</Amt>\
             <CdtDbtInd>DBIT</CdtDbtInd></Rcrd></Chrgs><NtryDtls>{}</NtryDtls>\
             <AddtlNtryInf>1234567890123456</AddtlNtryInf></Ntry>",
            details.concat()
        );
        let lines = read(&statement(&entry)).unwrap();
        assert!(lines.iter().all(|line| line.order_digits().is_none()), "{lines:?}");
        lines.iter().map(|l| (l.provider_reference.clone(), l.amount.to_string())).collect()
    };
    let named = |lines: &[(&str, &str)]| -> Vec<(String, String)> {
        lines.iter().map(|(name, amount)| ((*name).to_owned(), (*amount).to_owned())).collect()
    };
    let parts = [("100", "CRDT"), ("200", "CRDT")];
    // The bank has kept a charge, does not list a transaction, or one of them went out.
    assert_eq!(seen("299", parts), named(&[("100", "100"), ("200", "200"), ("whole", "-1")]));
    assert_eq!(seen("400", parts), named(&[("100", "100"), ("200", "200"), ("whole", "100")]));
    let parts = [("100", "DBIT"), ("200", "CRDT")];
    assert_eq!(seen("100", parts), named(&[("100", "-100"), ("200", "200")]));
}

#[test]
fn the_side_of_an_entry_is_that_of_its_only_transaction() {
    let text = ENTRY.replace("<TxDtls>", "<TxDtls><CdtDbtInd>DBIT</CdtDbtInd>");
    let lines = read(&statement(&text)).unwrap();
    assert_eq!(lines.iter().map(|line| line.amount).collect::<Vec<_>>(), [Decimal::from(250)]);
    assert_eq!(lines[0].name, "A. Lovelace & Co");
}

#[test]
fn a_reversal_or_return_without_transactions_of_its_own_is_known_as_one() {
    let entry = |more: &str, details: &str| {
        let entry = format!(
            "<Ntry><Amt Ccy=\"EUR\">9</Amt><CdtDbtInd>CRDT</CdtDbtInd>{more}<Sts>BOOK</Sts>\
             <AcctSvcrRef>whole</AcctSvcrRef><NtryDtls>{details}</NtryDtls>\
             <AddtlNtryInf>1234567890123456</AddtlNtryInf></Ntry>"
        );
        read(&statement(&entry)).unwrap().remove(0).return_reason
    };
    let returned = "<TxDtls><RtrInf><Rsn><Cd>AC04</Cd></Rsn></RtrInf></TxDtls>".repeat(2);
    assert_eq!(entry("", ""), "");
    assert_eq!(entry("<RvslInd>true</RvslInd>", ""), "reversal");
    assert_eq!(entry("", &returned), "AC04");
}

#[test]
fn an_amount_below_zero_is_refused() {
    for wrong in ["-250.00", "-0.01"] {
        let refused = read(&statement(&ENTRY.replace("250.00", wrong))).unwrap_err();
        assert!(refused.to_string().contains("below zero"), "{refused}");
    }
}

#[test]
fn an_entry_that_is_neither_a_credit_nor_a_debit_is_refused() {
    let side = "<CdtDbtInd>CRDT</CdtDbtInd>";
    for wrong in ["", "<CdtDbtInd/>", "<CdtDbtInd>C</CdtDbtInd>"] {
        let refused = read(&statement(&ENTRY.replace(side, wrong))).unwrap_err();
        assert!(refused.to_string().contains("neither a credit nor a debit"), "{refused}");
        let pending = ENTRY.replace("BOOK", "PDNG").replace(side, "");
        assert_eq!(read(&statement(&pending)), Ok(Vec::new()));
    }
}

#[test]
fn what_stands_for_no_name_names_no_payment() {
    let named = |own: &str, refs: &str| {
        let refs = format!("<Refs>{refs}<EndToEndId>");
        let text = ENTRY.replace("<AcctSvcrRef>bank-1</AcctSvcrRef>", own);
        crate::read(statement(&text.replace("<Refs><EndToEndId>", &refs)).as_bytes()).unwrap()
    };
    let (none, own) = ("<InstrId>NOTPROVIDED</InstrId>", "<AcctSvcrRef>b</AcctSvcrRef>");
    let both = format!("{none}<TxId>t</TxId>");
    for (own, refs, name) in [(own, none, "b"), ("", &*both, "t"), (own, &*both, "b")] {
        let lines = named(own, refs);
        assert_eq!(lines[0].provider_reference, name);
        assert_eq!(lines[0].earlier_references, [NOT_PROVIDED]);
    }
    assert!(named("", none)[0].provider_reference.starts_with("line-"));
    assert!(named(own, "")[0].earlier_references.is_empty());
}

#[test]
fn payments_that_a_bank_names_nonref_are_as_many_as_their_entries() {
    let entry = |own: &str, refs: &str, text: &str| {
        let text = ENTRY.replace("bank-1", own).replace("order 1234567890123456", text);
        text.replace("<EndToEndId>NOTPROVIDED</EndToEndId>", refs)
    };
    let id = "<EndToEndId>NONREF</EndToEndId>";
    let entries = [
        entry(NO_REFERENCE, id, "one"),
        entry(NO_REFERENCE, id, "two"),
        entry(NO_REFERENCE, "<TxId>t</TxId>", "three"),
        entry(NO_REFERENCE, "<AcctSvcrRef>own</AcctSvcrRef>", "four"),
        entry("bank-2", "<TxId>NONREF</TxId>", "five"),
    ];
    let lines = crate::read(statement(&entries.concat()).as_bytes()).unwrap();
    let names: Vec<_> = lines.iter().map(|line| &*line.provider_reference).collect();
    assert!(names[0].starts_with("line-") && names[1].starts_with("line-"), "{names:?}");
    assert!(names[0] != names[1] && names[2..] == ["t", "own", "bank-2"], "{names:?}");
    assert!(lines.iter().all(|line| line.end_to_end_id.is_empty()), "{lines:?}");
    // Earlier versions have recorded the first of them under it.
    assert!(lines[..3].iter().all(|line| line.earlier_references == [NO_REFERENCE]), "{lines:?}");
    assert!(lines[3].earlier_references.is_empty(), "{lines:?}");
}

#[test]
fn long_names_that_begin_alike_are_those_of_two_payments() {
    let long = "x".repeat(255);
    let named = |name: &str| ENTRY.replace("bank-1", name);
    let entries = named(&format!("{long}1")) + &named(&format!("{long}2"));
    let lines = read(&statement(&entries)).unwrap();
    assert_ne!(lines[0].provider_reference, lines[1].provider_reference);
    for line in lines {
        assert_eq!(line.provider_reference.len(), 255);
        assert_eq!(line.earlier_references, [&*long], "earlier versions have cut it");
    }
}

#[test]
fn hostile_documents_are_refused() {
    let entity = "<!DOCTYPE d [<!ENTITY a \"aaaa\">]>".to_owned() + &statement(ENTRY);
    let reference = statement(&ENTRY.replace("&amp;", "&a;"));
    let deep = statement(&("<x>".repeat(50) + &"</x>".repeat(50)));
    let long = statement(&format!("<x>{}</x>", "a".repeat(5_000)));
    let other = "<html></html>".to_owned();
    let namespace = statement(ENTRY).replace("camt.053", "pain.001");
    let prefixed = "<d:Document xmlns:d=\"urn:other\"><d:BkToCstmrStmt/></d:Document>".to_owned();
    let cut = statement(ENTRY).replace("</Document>", "");
    for text in [entity, reference, deep, long, other, namespace, prefixed, cut] {
        assert!(read(&text).is_err(), "{}", &text[..60]);
    }
}

#[test]
fn a_document_has_one_root_and_no_text_beside_it() {
    let one = statement(ENTRY);
    for beside in [&*one, "<x/>", "<x></x>", "text", "&amp;", "<![CDATA[text]]>"] {
        assert!(read(&format!("{one}{beside}")).is_err(), "{beside}");
    }
    assert!(read(&one.replacen("<Document", "text<Document", 1)).is_err());
    let alone = format!("{one}\n<!-- end --><?end?>\r\n");
    assert_eq!(read(&alone).unwrap(), read(&one).unwrap());
}
