//! The payer of a payment, found in the statements that were read: a refund goes to the account that
//! the money came from, and to no other one.

use std::fs;
use std::io;
use std::path::Path;

use rampart_statement::{Line, NOT_PROVIDED};
use rust_decimal::Decimal;

use crate::folder::Folder;
use crate::statements;

/// The incoming line of this reference in any statement of the folder; without one, that to which
/// earlier versions gave this name. `None` if there is none, or the name is that of several payers.
///
/// # Errors
/// When the folder cannot be read.
pub(crate) fn payment(folder: &Folder, reference: &str) -> io::Result<Option<Line>> {
    let (mut earlier, mut has_several): (Option<Line>, bool) = (None, false);
    for subfolder in ["inbox", "taken"] {
        for entry in fs::read_dir(folder.path(subfolder))? {
            for line in incoming(&entry?.path())? {
                if line.provider_reference == reference {
                    return Ok(Some(line));
                }
                if !line.earlier_references.iter().any(|name| name == reference) {
                    continue;
                }
                match &earlier {
                    Some(known) => has_several |= known.iban != line.iban,
                    None => earlier = Some(line),
                }
            }
        }
    }
    Ok(earlier.filter(|_| !has_several && reference != NOT_PROVIDED))
}

/// The lines of a file that came in. One that cannot be read as a statement has none.
fn incoming(path: &Path) -> io::Result<Vec<Line>> {
    let mut lines = statements::read(path)?.unwrap_or_default();
    lines.retain(|line| line.amount > Decimal::ZERO);
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::tests::Place;
    use crate::statements::tests::{entry, statement};

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
        ]);
        fs::write(place.0.join("taken/one.xml"), text).unwrap();
        let found = payment(&folder, "one").unwrap().unwrap();
        assert_eq!(found.provider_reference, "a");
        assert_eq!(payment(&folder, "two").unwrap(), None, "of one of two");
        assert_eq!(payment(&folder, "NOTPROVIDED").unwrap(), None, "of anybody");
    }
}
