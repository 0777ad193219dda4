//! `GET /admin/v1/receipt-keys` and `POST /admin/v1/receipt-keys/rotate`

use chrono::{DateTime, Utc};
use http::Method;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Kind, optional};
use crate::endpoint::{Endpoint, Json};
use crate::http::request::Input;
use crate::operate::admin::operator::Operator;
use crate::operate::admin::page::{Page, Part, limit};
use crate::platform::error::Result;
use crate::trading::receipt_keys::{self, PublishedKey};

/// Most keys of one answer.
const KEYS_MAX: i64 = 1_000;

/// A key in use, for the OpenAPI document.
const EXAMPLE: &str = r#"[{"keyId": "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k",
    "signs": true, "signsFrom": "2026-03-01T12:00:00Z", "createdAt": "2026-03-01T12:00:00Z"}]"#;

/// `GET /admin/v1/receipt-keys`
pub struct ListReceiptKeys;

impl Endpoint for ListReceiptKeys {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/receipt-keys";
    const ROLES: &'static [Role] = &[Role::Platform];
    const DOC: Doc = Doc {
        summary: "List the keys that sign receipts",
        details: "Newest first. All of them are published at `/.well-known/jwks.json`.",
        query: &[
            optional("after", Kind::Text, "The last key's id of the page before."),
            limit(KEYS_MAX),
        ],
        answer: EXAMPLE,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Part;
    type Response = Page<ReceiptKey>;

    fn read(input: &Input, _: &Operator) -> Result<Part> {
        Part::read(input, KEYS_MAX)
    }

    async fn call(core: &Core, _: Operator, part: Part) -> Result<Self::Response> {
        part.of(listed(core).await?, |key| key.key_id.clone())
    }
}

/// `POST /admin/v1/receipt-keys/rotate`
pub struct RotateReceiptKey;

impl Endpoint for RotateReceiptKey {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/admin/v1/receipt-keys/rotate";
    const ROLES: &'static [Role] = &[Role::Platform];
    const DOC: Doc = Doc {
        summary: "Sign receipts with a new key",
        details: "The new key is published at once and signs five minutes later, when nobody \
                  keeps a list without it. Earlier keys stay published: what they have signed can \
                  be verified for good.",
        answer: EXAMPLE,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = ();
    type Response = Json<Vec<ReceiptKey>>;

    fn read(_: &Input, _: &Operator) -> Result<()> {
        Ok(())
    }

    async fn call(core: &Core, operator: Operator, (): ()) -> Result<Self::Response> {
        // A key signs until the new one does, the first one too. It is not opened: where no master key
        // opens it any more, a new one takes its place.
        receipt_keys::published(core).await?;
        let mut tx = core.db.begin().await?;
        receipt_keys::rotate(&mut tx, core).await?;
        operator.record(&mut tx, core, "receipt-keys.rotate", "receipt-keys", json!({})).await?;
        tx.commit().await?;
        Ok(Json(listed(core).await?))
    }
}

/// A key that signs receipts, or has.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReceiptKey {
    /// Its `kid`.
    key_id: String,
    /// True for the one that signs now.
    signs: bool,
    /// Time from which it signs, until a later one does.
    signs_from: DateTime<Utc>,
    /// When it was made.
    created_at: DateTime<Utc>,
}

async fn listed(core: &Core) -> Result<Vec<ReceiptKey>> {
    let keys = receipt_keys::published(core).await?;
    let listed = keys.into_iter().map(|key| {
        let PublishedKey { key_id, signs, signs_from, created_at, .. } = key;
        ReceiptKey { key_id, signs, signs_from, created_at }
    });
    Ok(listed.collect())
}
