//! `POST /api/v2/user/link-identifier`: links the partner's own identifier to the user.

use http::Method;

use super::account::{self, RowLock};
use super::identifier::{self, LinkOutcome};
use crate::Core;
use crate::auth::caller::Session;
use crate::endpoint::openapi::doc::{Doc, Kind, Shape, required};
use crate::endpoint::{Body, ClaimedKey, Done, Endpoint, Json, save_answer};
use crate::http::fields::Fields;
use crate::http::request::Input;
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
    type Request = String;
    type Response = Json<Done>;

    fn read(input: &Input, _: &Session) -> Result<String> {
        let mut fields = Fields::from_object(&input.document)?;
        let missing = fields.value("identifier").is_none_or(|value| value.as_str() == Some(""));
        let code =
            if missing { Code::UserIdentifierMissing } else { Code::UserIdentifierLengthInvalid };
        let identifier = fields.required("identifier", code, |value| {
            let text = value.as_str()?;
            (CHARS_MIN..=CHARS_MAX).contains(&text.chars().count()).then(|| text.to_owned())
        });
        fields.finish(identifier)
    }

    async fn call(core: &Core, caller: Session, sent: String) -> Result<Json<Done>> {
        Self::call_with_key(core, caller, sent, None).await
    }

    async fn call_with_key(
        core: &Core,
        caller: Session,
        sent: String,
        key: Option<&ClaimedKey>,
    ) -> Result<Json<Done>> {
        let user = caller.client.key_of(caller.user);
        let identifier = match identifiers::open(core, user.client, &sent) {
            Some(identifier) => identifier,
            None => sent.parse().map_err(refusal)?,
        };
        link(core, user, &identifier, key).await?;
        Ok(Json(Done {}))
    }
}

/// ER707 for a character that no identifier has, such as the dashes of a UUID; ER102 for the length.
fn refusal(invalid: InvalidIdentifier) -> Error {
    let code = match invalid {
        InvalidIdentifier::Character => Code::UserIdentifierMalformed,
        InvalidIdentifier::Empty | InvalidIdentifier::Length => Code::UserIdentifierLengthInvalid,
    };
    Error::of_member(code, "identifier")
}

/// Links the identifier to the user, and records an event if the link is new.
///
/// # Errors
/// ER706 when it is another user's, ER709 when the user is deleted.
pub(crate) async fn link(
    core: &Core,
    user: UserKey,
    identifier: &UserIdentifier,
    key: Option<&ClaimedKey>,
) -> Result<()> {
    let mut tx = core.db.begin().await?;
    // The lock ensures that a concurrent erasure deletes this identifier too.
    if !account::lock(&mut tx, user, RowLock::Update).await? {
        return Err(Code::UserNotFound.into());
    }
    if identifier::link(&mut tx, core, user, identifier).await? == LinkOutcome::Conflict {
        return Err(Error::of_member(Code::UserIdentifierTaken, "identifier"));
    }
    save_answer(key, core, &mut tx, &Done {}).await?;
    tx.commit().await?;
    Ok(())
}
