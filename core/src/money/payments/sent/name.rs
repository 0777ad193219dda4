//! Names of payouts, as their reporters give them.

/// The reporter of a payout and its name for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) connector: String,
    /// `None`: the reporter has given none.
    pub(super) reference: Option<String>,
}

impl Name {
    /// True if the other report may be of the same payout under another name: a transaction that was
    /// replaced, or a report without a name.
    pub(super) fn may_be(&self, other: &Self) -> bool {
        self.connector == other.connector || self.reference.is_none() || other.reference.is_none()
    }

    /// True if the two have one name, whoever gives it.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.reference.is_some() && self.reference == other.reference
    }

    /// Notes the name of a report that is told. What was told by name before keeps its reporter.
    pub(super) fn keep(known: &mut Option<Self>, name: Self) {
        if known.as_ref().is_none_or(|known| known.reference.is_none()) {
            *known = Some(name);
        }
    }
}
