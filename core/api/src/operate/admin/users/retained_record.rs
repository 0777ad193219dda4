//! Records that law wants kept of erased users:
//! `POST /admin/v1/users/{uuid}/retained-record` and
//! `POST /admin/v1/users/{uuid}/retained-record/documents/{id}`
//!
//! They open for the role `compliance` alone: an owner has to be given it. Each opening has a reason
//! and stands in the audit.

use chrono::{DateTime, Utc};
use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::images::Image;
use super::{UUID, find};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Kind, Shape, required};
use crate::endpoint::{Body, Endpoint, Json};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::operate::admin::operator::Operator;
use crate::platform::error::{Denial, Result};
use crate::users::retained_record::{self, OpenedRecord, RetainedRecord};
use rampart_types::{UserId, plain_text};

const REASON_CHARS_MAX: usize = 500;

/// `POST /admin/v1/users/{uuid}/retained-record`
pub struct OpenRecord;

impl Endpoint for OpenRecord {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/admin/v1/users/{uuid}/retained-record";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND];
    const ROLES: &'static [Role] = &[Role::Compliance];
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Open what is kept of an erased user",
        details: "Law wants identity, documents and traded accounts kept for \
                  `privacy.retention_years` after the last order; until then they are sealed. An \
                  owner without the role `compliance` is refused.",
        path: &[UUID],
        body: Shape::of::<Members>(),
        request: r#"{"reason": "Request 2026-117 of the financial intelligence unit"}"#,
        answer: r#"{"uuid": "0199a000-0000-7000-8000-000000000005",
            "lastOrderAt": "2026-03-01T12:00:00Z", "retainedUntil": "2031-03-01T12:00:00Z",
            "personal": {"email": null, "firstName": "Ada", "lastName": "Lovelace",
                "phoneNumber": null, "dateOfBirth": "1990-12-10", "nationality": "NL",
                "address": "Keizersgracht", "addressNo": "1", "postalCode": "1015 AA",
                "city": "Amsterdam", "businessName": null, "businessCountry": null,
                "chamberOfCommerce": null, "shareToken": null, "taxCountry": "NL",
                "taxNumber": "111222333", "amld5Answers": {}},
            "accounts": [{"type": "bankTransfer", "identifier": "NL58ABNA0000000001",
                "name": "Ada Lovelace"}],
            "documents": [{"id": "0199a000-0000-7000-8000-000000000006", "type": "passport",
                "side": "front", "mediaType": "image/jpeg"}]}"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Opening;
    type Response = Json<Record>;

    fn read(input: &Input, _: &Operator) -> Result<Opening> {
        Opening::read(input)
    }

    async fn call(core: &Core, operator: Operator, opening: Opening) -> Result<Json<Record>> {
        let (user, opened) = opening.open(core, &operator, None).await?;
        let OpenedRecord { record, last_order_at, retained_until, .. } = opened;
        Ok(Json(Record { uuid: user, last_order_at, retained_until, record }))
    }
}

/// `POST /admin/v1/users/{uuid}/retained-record/documents/{id}`
pub struct OpenDocument;

impl Endpoint for OpenDocument {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/admin/v1/users/{uuid}/retained-record/documents/{id}";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND];
    const ROLES: &'static [Role] = &[Role::Compliance];
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Open an image that is kept of an erased user",
        details: "As the user sent it. An owner without the role `compliance` is refused.",
        path: &[UUID, required("id", Kind::Format("uuid"), "The image's id.")],
        body: Shape::of::<Members>(),
        request: r#"{"reason": "Request 2026-117 of the financial intelligence unit"}"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = (Opening, Uuid);
    type Response = Image;

    fn read(input: &Input, _: &Operator) -> Result<(Opening, Uuid)> {
        let opening = Opening::read(input)?;
        let id = input.param("id").parse().map_err(|_| Denial::not_found("document"))?;
        Ok((opening, id))
    }

    async fn call(
        core: &Core,
        operator: Operator,
        (opening, id): (Opening, Uuid),
    ) -> Result<Image> {
        let unknown = || Denial::not_found("document");
        let (_, mut opened) = opening.open(core, &operator, Some(id)).await?;
        let key = opened.keys.remove(&id).ok_or_else(unknown)?;
        let mut documents = opened.record.documents.into_iter();
        let document = documents.find(|document| document.id == id).ok_or_else(unknown)?;
        let sealed = core.documents.get(id).await?;
        let image = core.images.run(move || sealed.open_by_key(key)).await??;
        Ok(Image::new(&document.media_type, image))
    }
}

/// A record that is to be opened.
#[derive(Debug)]
pub struct Opening {
    user: String,
    reason: String,
}

impl Opening {
    fn read(input: &Input) -> Result<Self> {
        let Members { reason } = strict::body(input)?;
        let reason = plain_text(&reason, REASON_CHARS_MAX)
            .ok_or_else(|| Denial::unprocessable("reason: 1 to 500 characters"))?;
        Ok(Self { user: input.param("uuid").to_owned(), reason })
    }

    /// Opens it, for one of its images or as a whole, and notes in the audit who did and why.
    async fn open(
        self,
        core: &Core,
        operator: &Operator,
        document: Option<Uuid>,
    ) -> Result<(UserId, OpenedRecord)> {
        let mut tx = core.db.begin().await?;
        let key = find(&mut tx, &self.user).await?;
        operator.check_own(Role::Compliance)?;
        let opened = retained_record::open(&mut tx, core, key).await?;
        let opened = opened.ok_or_else(|| Denial::not_found("retained record"))?;
        let target = key.user.to_string();
        let (action, detail) = match document {
            Some(id) => ("user.retained-document", json!({"reason": self.reason, "id": id})),
            None => ("user.retained-record", json!({ "reason": self.reason })),
        };
        operator.record(&mut tx, core, action, &target, detail).await?;
        tx.commit().await?;
        Ok((key.user, opened))
    }
}

/// The reason for which a retained record is opened.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "RetainedRecordOpening")]
#[serde(deny_unknown_fields)]
struct Members {
    /// The operator's words for the audit, 1 to 500 characters; no personal data.
    reason: String,
}

/// A retained record in an answer.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "OpenedRetainedRecord")]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// The user's id.
    uuid: UserId,
    /// The time of the user's last order.
    last_order_at: DateTime<Utc>,
    /// It is destroyed then.
    retained_until: DateTime<Utc>,
    #[serde(flatten)]
    record: RetainedRecord,
}
