//! `rampart audit list|verify`.

use clap::Subcommand;
use serde::Serialize;
use serde_json::Value;

use super::{Call, Page, StartupError, Target, query};

pub(super) const COLUMNS: &str = "AT at, ACTOR actor, ACTION action, TARGET target, DETAIL detail";

/// The audit: what operators did.
#[derive(Debug, Serialize, Subcommand)]
#[serde(rename_all_fields = "camelCase", untagged)]
pub(crate) enum Audit {
    /// List the entries that meet every criterion, newest first.
    List {
        /// A partner's slug, an order's number, a user's id …
        #[arg(long)]
        #[serde(rename = "target")]
        of: Option<String>,
        /// Name of the operator, or who else made the changes.
        #[arg(long, value_name = "NAME")]
        #[serde(rename = "actor")]
        by: Option<String>,
        /// Such as partner.change.
        #[arg(long)]
        action: Option<String>,
        /// Earliest time, such as 2026-03-01T12:00:00Z.
        #[arg(long, value_name = "TIME")]
        from: Option<String>,
        /// Time before which they were written.
        #[arg(long, value_name = "TIME")]
        before: Option<String>,
        #[command(flatten)]
        page: Page,
    },
    /// Verify that no entry was changed, taken out or put in; print the last position and its MAC.
    /// Status 1 if one was; 2 if that cannot be told.
    Verify {
        /// Begin behind this place, as an earlier verification printed it.
        #[arg(long, value_name = "POSITION:MAC")]
        after: Option<String>,
    },
}

impl Call for Audit {
    fn call(&self, target: &Target) -> Result<(), StartupError> {
        match self {
            Self::List { .. } => target.list("audit", self, COLUMNS),
            Self::Verify { after } => target.run(async |admin| {
                let read = async |place: Option<(String, String)>| {
                    let (after, mac) = place.unzip();
                    let criteria = query([("after", after), ("mac", mac)]);
                    admin.get(&format!("audit/verification{criteria}")).await
                };
                verify(read, after.as_deref()).await
            }),
        }
    }
}

/// Verifies page after page, up to the end. Where the place that a page begins behind was archived since
/// the page before, the verification begins anew, with what is left. If a page does not come otherwise,
/// the failure says where to go on.
async fn verify(
    mut read: impl AsyncFnMut(Option<(String, String)>) -> Result<Value, StartupError>,
    after: Option<&str>,
) -> Result<Value, StartupError> {
    let mut start = match after.map(|place| place.split_once(':')) {
        None => None,
        Some(Some((position, mac))) => Some((position.to_owned(), mac.to_owned())),
        Some(None) => return Err(StartupError::from("--after is not POSITION:MAC")),
    };
    let (mut rows, mut verified) = (0, None);
    loop {
        let page = read(start).await;
        let mut page = match (page, verified) {
            (Ok(page), _) => page,
            (Err(error), None) => return Err(error),
            (Err(error), Some((position, mac))) => match read(None).await {
                Ok(left) if left["archived"].as_u64() > Some(position) => {
                    rows = 0;
                    left
                }
                _ => {
                    let place = format!("--after {position}:{mac}");
                    return Err(format!("{error}; up to there it is intact: {place}").into());
                }
            },
        };
        rows += page["rows"].as_u64().unwrap_or(0);
        let intact = page["intact"].as_bool();
        if !intact.ok_or("the answer has no 'intact': it is not of an edge of this version")? {
            let (position, reason) = (&page["broken"]["position"], &page["broken"]["reason"]);
            let reason = reason.as_str().unwrap_or("the audit is not as it was written");
            return Err(StartupError::finding(format!("audit, position {position}: {reason}")));
        }
        if page["complete"] == true {
            page["rows"] = rows.into();
            return Ok(page);
        }
        let position = page["position"].as_u64().unwrap_or_default();
        let mac = page["mac"].as_str().unwrap_or_default().to_owned();
        start = Some((position.to_string(), mac.clone()));
        verified = Some((position, mac));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn a_verification_that_is_cut_off_says_where_to_go_on() {
        let read = async |place: Option<(String, String)>| match place {
            None => Ok(json!({"intact": true, "complete": false, "rows": 5, "position": 5,
                "mac": "ab"})),
            Some(_) => Err(StartupError::from("the admin listener does not answer")),
        };
        let failed = verify(read, None).await.unwrap_err().to_string();
        assert!(failed.ends_with("up to there it is intact: --after 5:ab"), "{failed}");
        let failed = verify(read, Some("5:ab")).await.unwrap_err().to_string();
        assert_eq!(failed, "the admin listener does not answer");
    }

    #[tokio::test]
    async fn a_verification_begins_anew_once_its_place_is_archived() {
        let mut calls = 0;
        let read = async |place: Option<(String, String)>| {
            calls += 1;
            match (calls, place) {
                (1, None) => Ok(json!({"intact": true, "complete": false, "rows": 5,
                    "position": 5, "mac": "ab", "archived": 0})),
                (2, Some(_)) => Err(StartupError::from("the rows up to 8 are archived (422)")),
                (3, None) => Ok(json!({"intact": true, "complete": true, "rows": 4,
                    "position": 12, "mac": "cd", "archived": 8})),
                _ => Err(StartupError::from("one call too many")),
            }
        };
        let verified = verify(read, None).await.unwrap();
        assert_eq!((&verified["rows"], &verified["position"]), (&json!(4), &json!(12)));
    }
}
