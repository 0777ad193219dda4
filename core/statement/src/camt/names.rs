//! The names that a bank gives a transaction: its own one tells payments apart, those of others only
//! where it gives none.

use std::collections::HashMap;

use crate::{Line, NO_REFERENCE, beginning, is_placeholder, plain, stored_reference};

/// The names of an entry or of one of its transactions. Texts are empty where there is none.
#[derive(Default)]
pub(super) struct Names {
    /// `AcctSvcrRef`: the bank's own.
    of_bank: String,
    /// The first of the others: `TxId` and `InstrId`, or `NtryRef`.
    other: String,
    /// By the rule of earlier versions, which took what stood for no name for one.
    earlier: String,
    /// `AcctSvcrRef` is [`NO_REFERENCE`], which earlier versions took for the bank's own name.
    has_no_reference: bool,
}

impl Names {
    /// Reads an `AcctSvcrRef`.
    pub(super) fn read_own(&mut self, text: &str) {
        self.earlier = plain(text);
        self.has_no_reference = self.earlier == NO_REFERENCE;
        if !is_placeholder(&self.earlier) {
            self.of_bank.clone_from(&self.earlier);
        }
    }

    /// Reads another name.
    pub(super) fn read_other(&mut self, text: &str) {
        let text = plain(text);
        if self.earlier.is_empty() {
            self.earlier.clone_from(&text);
        }
        if self.other.is_empty() && !is_placeholder(&text) {
            self.other = text;
        }
    }

    /// Names the line of a transaction that has the entry for itself, or of an entry.
    pub(super) fn name(&self, entry: &Self, line: &mut Line) {
        let names = [&self.of_bank, &entry.of_bank, &self.other, &entry.other];
        let name = names.into_iter().find(|name| !name.is_empty()).map_or("", String::as_str);
        line.provider_reference = stored_reference(name);
        let earlier = if self.earlier.is_empty() { &entry.earlier } else { &self.earlier };
        let is_of_entry = self.of_bank.is_empty() && entry.has_no_reference;
        let placeholder = if self.has_no_reference || is_of_entry { NO_REFERENCE } else { "" };
        // Earlier versions have cut a long one.
        for known in [beginning(earlier), beginning(name), placeholder.to_owned()] {
            let is_other = !known.is_empty() && known != line.provider_reference;
            if is_other && !line.earlier_references.contains(&known) {
                line.earlier_references.push(known);
            }
        }
    }
}

/// Takes a name that several lines of an entry have from all of them: it is the batch's, and their
/// contents name them instead. Earlier versions knew the first of them by it.
pub(super) fn tell_apart(lines: &mut [Line]) {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for line in lines.iter() {
        *counts.entry(line.provider_reference.clone()).or_default() += 1;
    }
    for line in lines {
        let is_shared = counts.get(&line.provider_reference).is_some_and(|count| *count > 1);
        if is_shared && !line.provider_reference.is_empty() {
            line.earlier_references.push(std::mem::take(&mut line.provider_reference));
        }
    }
}
