//! Outcomes of an identity check.

use super::recipe::{ScenarioRequest, user, user_event};
use super::{Kind, ListedScenario, Shown};
use crate::operate::sandbox::user_event::SimulatedUserEvent;

/// The state in a user's profile.
const SHOWN_AT: &str = "/status/details/identityVerificationStatus";

pub(super) fn scenarios() -> Vec<ListedScenario> {
    use SimulatedUserEvent::{IdentityBlocked, IdentityFailed, IdentityVerified};
    [
        ("identity-pending", "The check has to be made.", None, "pending"),
        ("identity-verified", "The check is passed.", Some(IdentityVerified), "verified"),
        (
            "identity-failed",
            "The check is failed; it may be made again.",
            Some(IdentityFailed),
            "failed",
        ),
        (
            "identity-blocked",
            "The operator refuses the identity.",
            Some(IdentityBlocked),
            "blocked",
        ),
    ]
    .into_iter()
    .map(|(name, description, event, status)| {
        let mut requests = vec![user()];
        requests.extend(event.map(|event| user_event(event.as_str())));
        requests.push(ScenarioRequest::get("/api/v1/user/info").for_user());
        let shown = Shown { status, pointer: SHOWN_AT };
        ListedScenario::state(Kind::Identity, name, description, shown, requests)
    })
    .collect()
}
