//! The payer of a payment, found in the statements that were read: a refund goes to the account that
//! the money came from, and to no other one.

use std::fs;
use std::io;
use std::path::Path;

use rampart_statement::Line;
use rust_decimal::Decimal;

use crate::folder::Folder;
use crate::statements;

/// The incoming line of this reference in any statement of the folder; `None` if there is none.
///
/// # Errors
/// When the folder cannot be read.
pub(crate) fn payment(folder: &Folder, reference: &str) -> io::Result<Option<Line>> {
    for subfolder in ["inbox", "taken"] {
        for entry in fs::read_dir(folder.path(subfolder))? {
            if let Some(line) = line_of(&entry?.path(), reference)? {
                return Ok(Some(line));
            }
        }
    }
    Ok(None)
}

fn line_of(path: &Path, reference: &str) -> io::Result<Option<Line>> {
    // One that cannot be read as a statement has paid nothing.
    let Ok(lines) = statements::read(path)? else { return Ok(None) };
    let is_it = |line: &Line| line.amount > Decimal::ZERO && line.provider_reference == reference;
    Ok(lines.into_iter().find(is_it))
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
}
