//! The payer of a payment, found in the statements that were read: a refund goes to the account that
//! the money came from, and to no other one.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};

use rampart_statement::{Line, is_placeholder};
use rust_decimal::Decimal;

use crate::account::Account;
use crate::folder::Folder;
use crate::statements::{self, of_account};

/// An index of the statements that were taken, each of which is read once: they never change.
#[derive(Debug, Default)]
pub(crate) struct Payers {
    files: Vec<PathBuf>,
    indexed: HashSet<PathBuf>,
    /// Hashes of the names of payments, each with the place in `files` of one that has it.
    named: BTreeSet<(u64, usize)>,
}

impl Payers {
    /// The incoming line of this reference in any statement of the account; without one, that to which
    /// earlier versions gave this name. `None` if there is none, or the name is that of several
    /// payers.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub(crate) fn payment(
        &mut self,
        folder: &Folder,
        account: &Account,
        reference: &str,
    ) -> io::Result<Option<Line>> {
        self.index(folder, account)?;
        let hash = hash(reference);
        let places = self.named.range((hash, 0)..=(hash, usize::MAX));
        let taken = places.filter_map(|(_, place)| self.files.get(*place).cloned());
        let (mut own, mut earlier) = (Vec::new(), Vec::new());
        for path in files(&folder.path("inbox"))?.into_iter().chain(taken) {
            for line in incoming(&path, account)? {
                if line.provider_reference == reference {
                    own.push(line);
                } else if line.earlier_references.iter().any(|name| name == reference) {
                    earlier.push(line);
                }
            }
        }
        let mut found = if own.is_empty() { earlier } else { own };
        let is_of_one = found.iter().all(|line| line.iban == found[0].iban);
        found.truncate(1);
        Ok(found.pop().filter(|_| is_of_one && !is_placeholder(reference)))
    }

    /// Reads the statements that were taken since the last time.
    fn index(&mut self, folder: &Folder, account: &Account) -> io::Result<()> {
        for path in files(&folder.path("taken"))? {
            if self.indexed.contains(&path) {
                continue;
            }
            let place = self.files.len();
            for line in incoming(&path, account)? {
                let names = line.earlier_references.iter().chain([&line.provider_reference]);
                self.named.extend(names.map(|name| (hash(name), place)));
            }
            self.files.push(path.clone());
            self.indexed.insert(path);
        }
        Ok(())
    }
}

/// A hash that lasts as long as the process. Equal ones of two names only cost a look at a file.
fn hash(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}

/// The files of a subfolder.
fn files(subfolder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(subfolder)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            files.push(entry.path());
        }
    }
    Ok(files)
}

/// The lines of a file that came in. One that is no statement of the account, or was taken away, has
/// none.
fn incoming(path: &Path, account: &Account) -> io::Result<Vec<Line>> {
    let lines = match statements::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        lines => lines?,
    };
    let mut lines = lines.and_then(|lines| of_account(lines, account)).unwrap_or_default();
    lines.retain(|line| line.amount > Decimal::ZERO);
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::tests::Place;
    use crate::statements::tests::{entry, statement};
    use crate::transfer::tests::settings;

    /// The payment of this reference in the folder, by an index that is made for it.
    fn payment(folder: &Folder, reference: &str) -> io::Result<Option<Line>> {
        Payers::default().payment(folder, &settings().account, reference)
    }

    #[test]
    fn a_payer_is_found_in_what_was_read() {
        let place = Place::make();
        let folder = Folder::open(&place.0).unwrap();
        let text = statement(&[entry("bank-1", "CRDT", ""), entry("bank-2", "DBIT", "")]);
        fs::write(place.0.join("taken/one.xml"), text).unwrap();
        fs::write(place.0.join("taken/two.xml"), "no statement").unwrap();
        let found = payment(&folder, "bank-1").unwrap().unwrap();
        assert_eq!((&*found.iban, &*found.name), ("NL58ABNA0000000001", "Ada"));
        assert_eq!(payment(&folder, "bank-2").unwrap(), None, "it left the account");
        assert_eq!(payment(&folder, "bank-3").unwrap(), None);
    }

    #[test]
    fn a_statement_that_was_taken_is_read_once_unless_it_names_the_payment() {
        let place = Place::make();
        let folder = Folder::open(&place.0).unwrap();
        let account = settings().account;
        let write = |name: &str, text: &str| fs::write(place.0.join(name), text).unwrap();
        let one = statement(&[entry("bank-1", "CRDT", "")]);
        write("taken/one.xml", &one);
        write("taken/two.xml", &statement(&[entry("bank-2", "CRDT", "")]));
        let mut payers = Payers::default();
        assert!(payers.payment(&folder, &account, "bank-1").unwrap().is_some());
        // Read again, it would be of another payer.
        write("taken/two.xml", &one.replace("NL58ABNA0000000001", "NL20INGB0001234567"));
        assert!(payers.payment(&folder, &account, "bank-1").unwrap().is_some());
        write("taken/three.xml", &statement(&[entry("bank-3", "CRDT", "")]));
        write("inbox/four.xml", &statement(&[entry("bank-4", "CRDT", "")]));
        for reference in ["bank-3", "bank-4"] {
            assert!(payers.payment(&folder, &account, reference).unwrap().is_some());
        }
        fs::remove_file(place.0.join("taken/one.xml")).unwrap();
        assert_eq!(payers.payment(&folder, &account, "bank-1").unwrap(), None);
    }

    #[test]
    fn a_payment_of_another_account_or_of_two_payers_is_given_back_to_nobody() {
        let place = Place::make();
        let folder = Folder::open(&place.0).unwrap();
        let text = statement(&[entry("bank-1", "CRDT", "")]);
        let others = text.replace("NL02ABNA0123456789", "NL20INGB0001234567");
        fs::write(place.0.join("inbox/others.xml"), others).unwrap();
        assert_eq!(payment(&folder, "bank-1").unwrap(), None);
        fs::write(place.0.join("taken/one.xml"), &text).unwrap();
        fs::write(place.0.join("inbox/again.xml"), &text).unwrap();
        assert!(payment(&folder, "bank-1").unwrap().is_some(), "once more, and the same");
        let contradicts = text.replace("NL58ABNA0000000001", "NL20INGB0001234567");
        fs::write(place.0.join("taken/two.xml"), contradicts).unwrap();
        assert_eq!(payment(&folder, "bank-1").unwrap(), None);
    }

    #[test]
    fn an_earlier_name_is_that_of_one_payer() {
        let place = Place::make();
        let folder = Folder::open(&place.0).unwrap();
        let paid = |own: &str, refs: &str, iban: &str| {
            let line = entry(own, "CRDT", &format!("<Refs>{refs}</Refs>"));
            line.replace("NL58ABNA0000000001", iban)
        };
        let text = statement(&[
            paid("a", "<TxId>one</TxId>", "NL58ABNA0000000001"),
            paid("b", "<TxId>two</TxId>", "NL58ABNA0000000001"),
            paid("c", "<TxId>two</TxId>", "NL02ABNA0123456789"),
            paid("d", "<InstrId>NOTPROVIDED</InstrId>", "NL58ABNA0000000001"),
            paid("NONREF", "<TxId>e</TxId>", "NL58ABNA0000000001"),
        ]);
        fs::write(place.0.join("taken/one.xml"), text).unwrap();
        let found = payment(&folder, "one").unwrap().unwrap();
        assert_eq!(found.provider_reference, "a");
        assert_eq!(payment(&folder, "two").unwrap(), None, "of one of two");
        for anybodys in ["NOTPROVIDED", "NONREF"] {
            assert_eq!(payment(&folder, anybodys).unwrap(), None, "{anybodys}");
        }
    }
}
