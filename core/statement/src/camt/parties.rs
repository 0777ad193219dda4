//! The parties of a transaction. A bank may name both of them, of which one is the account's holder.

use crate::{Line, bounded};

/// Debtor and creditor. Texts are empty where there is none.
#[derive(Default)]
pub(super) struct Parties {
    debtor: Party,
    creditor: Party,
}

#[derive(Default)]
struct Party {
    name: String,
    iban: String,
}

impl Parties {
    /// Reads an element below `RltdPties`. Of several names the first is the party's own.
    pub(super) fn read(&mut self, names: &[&str], text: &str) {
        let slot = match names {
            ["Dbtr", .., "Nm"] => &mut self.debtor.name,
            ["Cdtr", .., "Nm"] => &mut self.creditor.name,
            ["DbtrAcct", "Id", "IBAN"] => &mut self.debtor.iban,
            ["CdtrAcct", "Id", "IBAN"] => &mut self.creditor.iban,
            _ => return,
        };
        if slot.is_empty() {
            *slot = bounded(text);
        }
    }

    /// Gives a line the party on the other side of `account`, an IBAN or empty: the debtor of a credit,
    /// the creditor of a debit, nobody where that one is not named. A transfer that comes back may
    /// have the parties of the one that went out: the other one is then taken, if its IBAN shows
    /// that it is not the account's holder.
    pub(super) fn name(self, account: &str, is_debit: bool, line: &mut Line) {
        let Self { debtor, creditor } = self;
        let (usual, other) = if is_debit { (creditor, debtor) } else { (debtor, creditor) };
        let is_known = |party: &Party| !party.iban.is_empty() && !account.is_empty();
        let is_own = |party: &Party| is_known(party) && party.iban == account;
        let is_elsewhere = |party: &Party| is_known(party) && party.iban != account;
        let is_back = is_own(&usual) || (!line.return_reason.is_empty() && usual.iban.is_empty());
        let party = if is_back && is_elsewhere(&other) { other } else { usual };
        if !is_own(&party) {
            (line.name, line.iban) = (party.name, party.iban);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "NL02ABNA0123456789";
    const ADA: &str = "NL58ABNA0000000001";

    type Elements<'a> = &'a [(&'a [&'a str], &'a str)];

    static DEBTOR: [(&[&str], &str); 2] =
        [(&["Dbtr", "Pty", "Nm"], "Ada"), (&["DbtrAcct", "Id", "IBAN"], ADA)];
    static CREDITOR: [(&[&str], &str); 2] =
        [(&["Cdtr", "Pty", "Nm"], "We"), (&["CdtrAcct", "Id", "IBAN"], OWN)];

    /// Name and account of the other side, of a line of the account whose parties are these.
    fn named_in(line: Line, is_debit: bool, elements: Elements<'_>) -> (String, String) {
        let (mut parties, mut line) = (Parties::default(), line);
        elements.iter().for_each(|(names, text)| parties.read(names, text));
        let account = std::mem::take(&mut line.account);
        parties.name(&account, is_debit, &mut line);
        (line.name, line.iban)
    }

    /// The same, of an account with an IBAN.
    fn named(is_debit: bool, elements: Elements<'_>) -> (String, String) {
        named_in(Line { account: OWN.to_owned(), ..Line::default() }, is_debit, elements)
    }

    /// The same, of a transfer that came back.
    fn named_back(is_debit: bool, elements: Elements<'_>) -> (String, String) {
        let (account, return_reason) = (OWN.to_owned(), "AC04".to_owned());
        named_in(Line { account, return_reason, ..Line::default() }, is_debit, elements)
    }

    fn ada() -> (String, String) {
        ("Ada".to_owned(), ADA.to_owned())
    }

    fn nobody() -> (String, String) {
        Default::default()
    }

    #[test]
    fn the_other_side_is_never_the_account_itself() {
        let both = [DEBTOR, CREDITOR].concat();
        assert_eq!(named(false, &both), ada());
        assert_eq!(named(false, &DEBTOR), ada());
        assert_eq!(named(true, &both), ada());
        assert_eq!(named(false, &CREDITOR), nobody());
        assert_eq!(named(false, &[]), nobody());
    }

    #[test]
    fn a_side_that_is_not_named_is_absent_whoever_the_other_one_is() {
        let (we, ada): (Elements<'_>, Elements<'_>) = (&CREDITOR[..1], &DEBTOR[..1]);
        for side in [we, &CREDITOR[..]] {
            // The account has no IBAN, or the bank writes none of it beside the holder's name.
            assert_eq!(named_in(Line::default(), false, side), nobody());
            assert_eq!(named(false, side), nobody());
        }
        for side in [ada, &DEBTOR[..]] {
            assert_eq!(named_in(Line::default(), true, side), nobody());
            assert_eq!(named(true, side), nobody());
        }
        // Another account of the holder's, such as one for each payer, is no payer either.
        let virtual_one: [(&[&str], &str); 2] =
            [CREDITOR[0], (&["CdtrAcct", "Id", "IBAN"], "NL20INGB0001234567")];
        assert_eq!(named(false, &virtual_one), nobody());
    }

    #[test]
    fn a_transfer_that_came_back_has_the_party_with_another_account() {
        let both = [DEBTOR, CREDITOR].concat();
        let without_our_account: Vec<_> = [&DEBTOR[..], &CREDITOR[..1]].concat();
        for elements in [&both[..], &without_our_account[..], &DEBTOR[..]] {
            assert_eq!(named_back(true, elements), ada());
            assert_eq!(named_back(false, elements), ada());
        }
        assert_eq!(named_back(false, &CREDITOR), nobody());
        assert_eq!(named_back(false, &CREDITOR[..1]), nobody());
    }

    #[test]
    fn a_party_without_an_account_is_named_by_the_side_of_the_entry() {
        let both: [(&[&str], &str); 3] = [
            (&["Dbtr", "Nm"], "Ada"),
            (&["Dbtr", "CtctDtls", "Nm"], "Her assistant"),
            (&["Cdtr", "Nm"], "Bob"),
        ];
        assert_eq!(named(false, &both).0, "Ada");
        assert_eq!(named(true, &both).0, "Bob");
    }
}
