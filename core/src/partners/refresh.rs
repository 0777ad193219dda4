//! `POST /api/v1/refresh`: issues the next token pair of a client or of a user.

use http::Method;

use crate::Core;
use crate::auth::caller::Anyone;
use crate::auth::tokens::refresh::{RefreshToken, TokenPair};
use crate::endpoint::openapi::doc::{Doc, Kind, Shape, required};
use crate::endpoint::{Body, Endpoint, Json};
use crate::http::fields::Fields;
use crate::http::request::Input;
use crate::platform::error::{Code, Result};
use crate::tenancy::tenants::Sender;

/// Version 1, the only one.
pub struct V1;

/// A presented refresh token and its sender.
#[derive(Debug)]
pub struct Presented {
    /// `None` when it is malformed.
    token: Option<RefreshToken>,
    sender: Sender,
}

impl Endpoint for V1 {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/api/v1/refresh";
    const ERRORS: &'static [Code] = &[Code::RefreshTokenInvalid, Code::RefreshTokenMissing];
    const BODY: Body = Body::Json;
    const DOC: Doc = Doc {
        summary: "Exchange a refresh token for the next pair of tokens",
        details: "For tokens of clients and of users. A refresh token is used once. Within 30 \
                  seconds it may be sent again, in case the answer was lost; after that, sending \
                  it ends the login that it comes from. By default ten requests a minute from one \
                  address, those for users' tokens included, and ten for a client's own tokens.",
        body: Shape::Members(&[required("refreshToken", Kind::Text, "The one of the last pair.")]),
        request: r#"{"refreshToken": "rr_7f3a9c"}"#,
        answer: r#"{"token": "eyJhbGciOiJIUzI1NiJ9.e30.9f3k", "refreshToken": "rr_c04b1e"}"#,
        ..Doc::NONE
    };
    type Caller = Anyone;
    type Request = Presented;
    type Response = Json<TokenPair>;

    fn read(input: &Input, _: &Anyone) -> Result<Presented> {
        let mut fields = Fields::from_object(&input.document)?;
        let text = fields.text("refreshToken", Code::RefreshTokenMissing);
        let presented = text.map(|text| Presented {
            token: RefreshToken::parse(&text),
            sender: Sender::of(&input.head),
        });
        fields.finish(presented)
    }

    async fn call(core: &Core, _: Anyone, presented: Presented) -> Result<Json<TokenPair>> {
        let snapshot = core.snapshots.current();
        let tenant = presented.token.and_then(|token| snapshot.tenants.get(&token.client));
        let (token, tenant) = (presented.token.as_ref(), tenant.map(|tenant| &**tenant));
        core.attempts.count_refresh(core, presented.sender.address, token, tenant).await?;
        let token = presented.token.ok_or(Code::RefreshTokenInvalid)?;
        // Before it is looked at: one that comes from elsewhere neither ends a login nor goes on.
        if !tenant.is_some_and(|tenant| tenant.allowed_senders.include(&presented.sender)) {
            return Err(Code::RefreshTokenInvalid.into());
        }
        Ok(Json(TokenPair::renew(core, &token).await?))
    }
}
