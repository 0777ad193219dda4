//! Entries of one statement that a bank has named alike.

use std::collections::HashMap;

use crate::{Line, stored_reference};

/// The lines of a statement so far that have a name and whose entry is numbered, by name and contents:
/// the numbers (`NtryRef`) of their entries.
#[derive(Default)]
pub(super) struct Twins(HashMap<(String, String), Vec<String>>);

impl Twins {
    /// Renames a line that an earlier entry of the statement has the name and the contents of, if the
    /// two entries have numbers of their own: `NtryRef` tells the entries of a statement apart, so they
    /// are two payments. The number is no part of the name, for another statement may count otherwise.
    pub(super) fn tell_apart(&mut self, entry: &str, line: &mut Line) {
        if entry.is_empty() || line.provider_reference.is_empty() {
            return;
        }
        let key = (line.provider_reference.clone(), line.contents());
        let entries = self.0.entry(key).or_default();
        if entries.iter().any(|known| known == entry) {
            return;
        }
        entries.push(entry.to_owned());
        let nth = entries.len();
        if nth > 1 {
            // No bank of SWIFT has this character in a name of its own.
            line.provider_reference =
                stored_reference(&format!("{}#{nth}", line.provider_reference));
        }
    }
}
