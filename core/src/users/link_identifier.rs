//! `POST /api/v2/user/link-identifier`: links the partner's own identifier to the user.

use http::Method;

use super::identifier::{self, LinkOutcome};
use crate::Core;
use crate::auth::caller::Session;
use crate::auth::user_credentials::lock_user;
use crate::endpoint::openapi::doc::{Doc, Kind, Shape, required};
use crate::endpoint::{Body, ClaimedKey, Done, Endpoint, Json, save_answer};
use crate::http::fields::Fields;
use crate::http::request::{Head, Input};
use crate::platform::db::Connection;
use crate::platform::error::{Code, Error, Result};
use crate::tenancy::tenants::Scope;
use crate::users::identifiers;
use rampart_types::{InvalidIdentifier, UserIdentifier, UserKey};

/// Shortest identifier that is read, in characters (API document).
const CHARS_MIN: usize = 36;
/// The longest one.
const CHARS_MAX: usize = 1_024;

/// Version 2, the only one.
pub struct V2;

impl Endpoint for V2 {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/api/v2/user/link-identifier";
    const SCOPE: Option<Scope> = Some(Scope::UsersWrite);
    const ERRORS: &'static [Code] = &[
        Code::UserIdentifierMissing,
        Code::UserIdentifierLengthInvalid,
        Code::UserIdentifierTaken,
    ];
    const BODY: Body = Body::Json;
    const IDEMPOTENT: bool = true;
    const DOC: Doc = Doc {
        summary: "Link your identifier to the user",
        details: "From then on `User-Identifier` proves the user. An identifier that stands in a \
                  checkout or onboarding URL is sent as it stands there. Linking it to the same \
                  user again changes nothing; ER706 says that another user has it.",
        body: Shape::Members(&[required(
            "identifier",
            Kind::Sized(CHARS_MIN, CHARS_MAX),
            "36 to 255 letters and digits, or the parameter of a URL of ours, unchanged.",
        )]),
        request: r#"{"identifier": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b"}"#,
        answer: "{}",
        ..Doc::NONE
    };
    type Caller = Session;
    type Request = LinkRequest;
    type Response = Json<Done>;

    fn read(input: &Input, _: &Session) -> Result<LinkRequest> {
        let mut fields = Fields::from_object(&input.document)?;
        let missing = fields.value("identifier").is_none_or(|value| value.as_str() == Some(""));
        let code =
            if missing { Code::UserIdentifierMissing } else { Code::UserIdentifierLengthInvalid };
        let identifier = fields.required("identifier", code, |value| {
            let text = value.as_str()?;
            (CHARS_MIN..=CHARS_MAX).contains(&text.chars().count()).then(|| text.to_owned())
        });
        let identifier = fields.finish(identifier)?;
        Ok(LinkRequest { identifier, head: input.head.clone() })
    }

    async fn call(core: &Core, caller: Session, request: LinkRequest) -> Result<Json<Done>> {
        Self::call_with_key(core, caller, request, None).await
    }

    async fn call_with_key(
        core: &Core,
        caller: Session,
        LinkRequest { identifier: sent, head }: LinkRequest,
        key: Option<&ClaimedKey>,
    ) -> Result<Json<Done>> {
        let Session { client, user } = caller;
        let identifier = match identifiers::open(core, client.id(), &sent) {
            Some(identifier) => identifier,
            None => sent.parse().map_err(refusal)?,
        };
        let mut tx = core.db.begin().await?;
        lock_user(&mut tx, core, &client, user, &head).await?;
        link(&mut tx, core, client.key_of(user), &identifier).await?;
        save_answer(key, core, &mut tx, &Done {}).await?;
        tx.commit().await?;
        Ok(Json(Done {}))
    }
}

/// A request to link an identifier.
#[derive(Debug)]
pub struct LinkRequest {
    /// As sent.
    identifier: String,
    /// The proof of the user.
    head: Head,
}

/// ER707 for a character that no identifier has, such as the dashes of a UUID; ER102 for the length.
fn refusal(invalid: InvalidIdentifier) -> Error {
    let code = match invalid {
        InvalidIdentifier::Character => Code::UserIdentifierMalformed,
        InvalidIdentifier::Empty | InvalidIdentifier::Length => Code::UserIdentifierLengthInvalid,
    };
    Error::of_member(code, "identifier")
}

/// Links the identifier to the user, and records an event if the link is new. The caller's transaction
/// has locked the user's row: an erasure, or what unlinks its identifiers, comes before it or finds it.
///
/// # Errors
/// ER706 when it is another user's.
pub(crate) async fn link(
    conn: &mut Connection,
    core: &Core,
    user: UserKey,
    identifier: &UserIdentifier,
) -> Result<()> {
    match identifier::link(conn, core, user, identifier).await? {
        LinkOutcome::Created | LinkOutcome::Existing => Ok(()),
        LinkOutcome::Conflict => Err(Error::of_member(Code::UserIdentifierTaken, "identifier")),
    }
}
