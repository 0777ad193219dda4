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

    /// Gives a line the party on the other side of `account`: who paid what came in, or was paid. A
    /// transfer that comes back has the parties of the one that went out.
    pub(super) fn name(self, account: &str, is_debit: bool, line: &mut Line) {
        let Self { debtor, creditor } = self;
        let (usual, other) = if is_debit { (creditor, debtor) } else { (debtor, creditor) };
        let is_own = |party: &Party| !party.iban.is_empty() && party.iban == account;
        let is_named = |party: &Party| !(party.name.is_empty() && party.iban.is_empty());
        let party = if is_named(&usual) && !is_own(&usual) { usual } else { other };
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

    /// Name and account of the other side, of an entry of this side whose parties are these.
    fn named(is_debit: bool, elements: &[(&[&str], &str)]) -> (String, String) {
        let (mut parties, mut line) = (Parties::default(), Line::default());
        elements.iter().for_each(|(names, text)| parties.read(names, text));
        parties.name(OWN, is_debit, &mut line);
        (line.name, line.iban)
    }

    #[test]
    fn the_other_side_is_never_the_account_itself() {
        let debtor: [(&[&str], &str); 2] =
            [(&["Dbtr", "Pty", "Nm"], "Ada"), (&["DbtrAcct", "Id", "IBAN"], ADA)];
        let creditor: [(&[&str], &str); 2] =
            [(&["Cdtr", "Pty", "Nm"], "We"), (&["CdtrAcct", "Id", "IBAN"], OWN)];
        let ada = ("Ada".to_owned(), ADA.to_owned());
        let both = [debtor, creditor].concat();
        assert_eq!(named(false, &both), ada);
        assert_eq!(named(false, &debtor), ada);
        // So they are named where the transfer is one that came back, or was taken back.
        assert_eq!(named(true, &both), ada);
        assert_eq!(named(true, &debtor), ada);
        let nobody = (String::new(), String::new());
        assert_eq!(named(false, &creditor), nobody);
        assert_eq!(named(false, &[]), nobody);
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
