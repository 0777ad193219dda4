//! `GET /admin/v1/audit/verification`

use http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Kind, optional};
use crate::endpoint::{Endpoint, Json};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::operate::admin::operator::Operator;
use crate::platform::audit::chain::{Anchor, Break, verify};
use crate::platform::error::{Denial, Result};

/// Most rows of one answer.
const ROWS_MAX: i64 = 100_000;
/// Length of a row's MAC (HMAC-SHA-256).
const MAC_BYTES: usize = 32;

/// `GET /admin/v1/audit/verification`
pub struct VerifyAudit;

impl Endpoint for VerifyAudit {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/audit/verification";
    const ROLES: &'static [Role] = &[Role::Compliance, Role::Platform];
    const DOC: Doc = Doc {
        summary: "Verify that no row of the audit was changed, taken out or put in",
        details: "At most 100000 rows; `after` with the answer's `position` and `mac` continues. \
                  Keep the last ones elsewhere: a later verification from there also tells whether \
                  that row is still the same, until it is archived. From then on `after` is 422, \
                  also between two pages: begin anew without it.",
        query: &[
            optional("after", Kind::Integer(0, i64::MAX), "The position to begin behind."),
            optional("mac", Kind::Text, "The MAC of the row there, in hex."),
        ],
        answer: r#"{"intact": true, "rows": 412, "position": 412, "complete": true,
            "mac": "b5bb9d8014a0f9b1d61e21e796d78dccdf1352f23cd32812f4850b878ae4944c",
            "archived": 0, "broken": null}"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Start;
    type Response = Json<Verification>;

    fn read(input: &Input, _: &Operator) -> Result<Start> {
        let Place { after, mac } = strict::query(input)?;
        let position = after.as_deref().map(str::parse::<i64>).transpose();
        let position = position.ok().map(Option::unwrap_or_default).filter(|p| *p >= 0);
        let position = position.ok_or_else(|| Denial::unprocessable("after: a position"))?;
        let mac = mac.map(hex::decode).transpose().ok().map(Option::unwrap_or_default);
        let mac = mac.filter(|mac| mac.is_empty() || mac.len() == MAC_BYTES);
        let mac = mac.ok_or_else(|| Denial::unprocessable("mac: 64 digits of hex"))?;
        if (position == 0) != mac.is_empty() {
            return Err(Denial::unprocessable("after and mac: both or neither").into());
        }
        Ok(Start(Anchor { position, mac }))
    }

    async fn call(core: &Core, _: Operator, Start(start): Start) -> Result<Json<Verification>> {
        let after = start.position;
        let verified = verify(core, start, ROWS_MAX).await?;
        let archived = verified.archived;
        if (1..archived).contains(&after) {
            let reason = format!("after: the rows up to {archived} are archived");
            return Err(Denial::unprocessable(reason).into());
        }
        Ok(Json(Verification {
            intact: verified.broken.is_none(),
            rows: verified.rows,
            position: verified.end.position,
            mac: hex::encode(&verified.end.mac),
            complete: verified.complete,
            archived,
            broken: verified.broken,
        }))
    }
}

/// The place where a verification begins.
#[derive(Debug)]
pub struct Start(Anchor);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Place {
    after: Option<String>,
    mac: Option<String>,
}

/// The result of a verification.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "AuditVerification")]
pub struct Verification {
    /// `true` if every row looked at is as it was written.
    intact: bool,
    /// Rows that are.
    rows: i64,
    /// The last of them.
    position: i64,
    /// Its MAC, in hex.
    mac: String,
    /// `true` if it is the last one of the audit.
    complete: bool,
    /// The last row that is archived and no longer here; 0 if none is.
    archived: i64,
    /// The first place that is not as it was written.
    broken: Option<Break>,
}
