//! Magic values of screenings.

use crate::money::connectors::screening::Decision;

/// `partnerOrderIdentifier`s of orders whose wallet's screening ends so; any text may follow after a
/// dash.
const WALLETS: [(&str, Decision); 2] =
    [("sandbox-screening-review", Decision::Review), ("sandbox-screening-block", Decision::Block)];
/// Last names of persons whose screening ends so.
const PERSONS: [(&str, Decision); 2] =
    [("Sandboxreview", Decision::Review), ("Sandboxblock", Decision::Block)];

/// The decision about the wallet of an order with this partner reference.
pub(crate) fn wallet(reference: Option<&str>) -> Decision {
    let of_reference = |(prefix, _): &&(&str, Decision)| {
        let rest = reference.and_then(|reference| reference.strip_prefix(prefix));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    WALLETS.iter().find(of_reference).map_or(Decision::Clear, |(_, decision)| *decision)
}

/// The decision about a person of this last name.
pub(crate) fn person(last_name: &str) -> Decision {
    let magic = PERSONS.iter().find(|(name, _)| *name == last_name);
    magic.map_or(Decision::Clear, |(_, decision)| *decision)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_screened_is_clear_without_a_magic_value() {
        assert_eq!(person("Lovelace"), Decision::Clear);
        assert_eq!(person("Sandboxblock"), Decision::Block);
        assert_eq!(wallet(None), Decision::Clear);
        assert_eq!(wallet(Some("sandbox-screening-review-7")), Decision::Review);
        assert_eq!(wallet(Some("sandbox-screening-reviews")), Decision::Clear);
    }
}
