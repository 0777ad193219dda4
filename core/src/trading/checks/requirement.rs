//! Requirements that have a page: the checks that an order waits for, and the items of the verification
//! status that hold no order up.

use super::Hold;
use crate::auth::caller::Client;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::users::account::Account;
use crate::users::documents::{self, ADDRESS_PROOF, IDENTITY_DOCUMENTS, Side};
use crate::users::verification::status::open_items;

/// A requirement that a user meets on a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Requirement {
    /// A check that is the user's to pass.
    Check(Hold),
    /// The code that was mailed to the user's address.
    EmailCode,
    /// Names and birth date.
    Person,
    /// The nationality.
    Nationality,
    /// An image that proves the residential address.
    AddressProof,
}

/// The state of an open requirement; of several, the first here counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RequirementState {
    /// The user has to act.
    Missing,
    /// It was refused: the user has to act again, or to ask.
    Rejected,
    /// A review must be completed.
    Pending,
}

/// Open requirements, each with its state.
pub(crate) type OpenRequirements = Vec<(Requirement, RequirementState)>;

impl Requirement {
    /// Requirements that are no checks.
    const ITEMS: [Self; 4] = [Self::EmailCode, Self::Person, Self::Nationality, Self::AddressProof];

    /// The name of its page.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Check(hold) => hold.name(),
            Self::EmailCode => "email-code",
            Self::Person => "person",
            Self::Nationality => "nationality",
            Self::AddressProof => "proof-of-address",
        }
    }

    /// The message with what meets it.
    pub(crate) const fn message(self) -> &'static str {
        match self {
            Self::Check(hold) => message(hold),
            Self::EmailCode => "check-email",
            Self::Person => "check-person",
            Self::Nationality => "check-nationality",
            Self::AddressProof => "check-address-proof",
        }
    }

    /// The requirement whose page has this name.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        let hold = Hold::from_name(name).filter(|hold| hold.is_users());
        let item = || Self::ITEMS.into_iter().find(|item| item.name() == name);
        hold.map(Self::Check).or_else(item)
    }

    /// True for a check of an order's own account or wallet.
    pub(super) const fn is_of_order(self) -> bool {
        matches!(self, Self::Check(Hold::Account | Hold::Wallet))
    }

    /// True if it has a page.
    pub(super) const fn has_page(self) -> bool {
        match self {
            Self::Check(hold) => hold.is_users(),
            _ => true,
        }
    }

    /// The requirement that an item of the verification status is a part of.
    fn of_item(name: &str) -> Option<Self> {
        Some(match name {
            "emailCode" => Self::EmailCode,
            "privacyAgreement" => Self::Check(Hold::Registration),
            "firstName" | "lastName" | "dateOfBirth" => Self::Person,
            "AMLD5Questions" => Self::Check(Hold::Amld5),
            "nationality" => Self::Nationality,
            "idDocument" | "verificationFlag" => Self::Check(Hold::Identity),
            "address" | "addressNo" | "postalCode" | "city" => Self::Check(Hold::Address),
            "proofOfAddress" => Self::AddressProof,
            _ => return None,
        })
    }
}

/// The requirements of the highest level that a user has not met, and the tax declaration if it is asked
/// for.
pub(crate) async fn open_requirements(
    conn: &mut Connection,
    client: &Client,
    account: &Account,
) -> Result<OpenRequirements> {
    let sides = documents::sides(conn, account.key()).await?;
    let mut open = OpenRequirements::new();
    for item in open_items(client, account, &sides) {
        let Some(requirement) = Requirement::of_item(item.name()) else { continue };
        let state = match item.is_pending() {
            true => RequirementState::Pending,
            false => RequirementState::Missing,
        };
        match open.iter_mut().find(|(known, _)| *known == requirement) {
            Some((_, known)) => *known = state.min(*known),
            None => open.push((requirement, state)),
        }
    }
    if account.statuses.dac8 == "missing" {
        open.push((Requirement::Check(Hold::Tax), RequirementState::Missing));
    }
    for requirement in rejected(account, &sides) {
        match open.iter_mut().find(|(known, _)| *known == requirement) {
            Some((_, state)) => *state = RequirementState::Rejected,
            None => open.push((requirement, RequirementState::Rejected)),
        }
    }
    Ok(open)
}

/// The requirements that were refused, and are not under review again.
pub(super) async fn refused_requirements(
    conn: &mut Connection,
    account: &Account,
) -> Result<Vec<Requirement>> {
    let sides = documents::sides(conn, account.key()).await?;
    Ok(rejected(account, &sides))
}

/// The same, of an account whose documents have these sides.
fn rejected(account: &Account, sides: &[Side]) -> Vec<Requirement> {
    let statuses = &account.statuses;
    let is_identity = |side: &Side| IDENTITY_DOCUMENTS.iter().any(|(kind, _)| *kind == side.kind);
    let is_proof = |side: &Side| side.kind == ADDRESS_PROOF.0;
    let is_refused = |status: &str| matches!(status, "failed" | "blocked");
    let has = |of: &dyn Fn(&Side) -> bool, status: &str| {
        sides.iter().any(|side| of(side) && side.status == status)
    };
    let identity = statuses.identity != "verified"
        && !has(&is_identity, "pending")
        && (is_refused(&statuses.identity) || has(&is_identity, "failed"));
    let proof = statuses.residential_address != "verified"
        && has(&is_proof, "failed")
        && !sides.iter().any(|side| is_proof(side) && side.counts());
    let all = [
        (Requirement::EmailCode, is_refused(&statuses.email)),
        (Requirement::Check(Hold::Registration), is_refused(&statuses.privacy_agreement)),
        (Requirement::Check(Hold::Amld5), is_refused(&statuses.amld5)),
        (Requirement::Check(Hold::Identity), identity),
        (Requirement::Check(Hold::Address), is_refused(&statuses.residential_address)),
        (Requirement::AddressProof, proof),
    ];
    all.into_iter().filter(|(_, is_refused)| *is_refused).map(|(one, _)| one).collect()
}

/// The message with what passes a check.
pub(super) const fn message(hold: Hold) -> &'static str {
    match hold {
        Hold::Registration => "check-registration",
        Hold::User => "check-user",
        Hold::Identity => "check-identity",
        Hold::Amld5 => "check-amld5",
        Hold::Tax => "check-tax",
        Hold::Address => "check-address",
        Hold::Account => "check-account",
        Hold::Wallet => "check-wallet",
        Hold::Screening | Hold::ScreeningReview => "check-waiting",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_lead_back_to_their_requirements() {
        let checks = Hold::ALL.into_iter().filter(|hold| hold.is_users()).map(Requirement::Check);
        let all: Vec<_> = checks.chain(Requirement::ITEMS).collect();
        let names: BTreeSet<_> = all.iter().map(|one| one.name()).collect();
        assert_eq!(names.len(), all.len());
        for requirement in all {
            assert_eq!(Requirement::from_name(requirement.name()), Some(requirement));
            assert!(requirement.has_page());
        }
        for none in ["", "user", "screening", "emailCode"] {
            assert_eq!(Requirement::from_name(none), None);
        }
    }

    #[test]
    fn the_first_state_counts() {
        let (missing, pending) = (RequirementState::Missing, RequirementState::Pending);
        assert_eq!(pending.min(missing), missing);
    }
}
