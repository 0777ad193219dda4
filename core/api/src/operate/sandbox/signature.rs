//! `POST /api/v2/sandbox/signature`: explains why a signature is invalid. It takes the body of an
//! offer or a checkout and returns the canonical text that its signature must cover.
//!
//! The text that was signed instead is found in two ways: the caller sends it as `canonical`, and
//! it is compared field by field; or common mistakes (`mistakes`) are tried one by one until the
//! signature verifies. The valid signature is never returned.

mod compare;
mod mistakes;

use http::Method;
use rampart_plugins::contract::PolicyKind;
use schemars::JsonSchema;
use serde::Serialize;

use crate::Core;
use crate::auth::caller::Client;
use crate::endpoint::openapi::doc::{Doc, Kind, Shape, optional};
use crate::endpoint::{Body, Endpoint, Json};
use crate::http::fields::Fields;
use crate::http::request::Input;
use crate::platform::error::{Code, Result};
use crate::tenancy::tenants::Scope;
use crate::trading::offers::signature::{Signable, check, is_well_formed};

/// Version 2, the only one.
pub struct V2;

impl Endpoint for V2 {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/api/v2/sandbox/signature";
    const SCOPE: Option<Scope> = Some(Scope::QuotesRead);
    const TEST_ONLY: bool = true;
    const ERRORS: &'static [Code] = &[Code::SigningSecretMissing, Code::SignatureNotString];
    const BODY: Body = Body::Json;
    const DOC: Doc = Doc {
        summary: "Explain a signature",
        details: "Takes the body of an offer or a checkout as it would be sent, and says which text \
                  its signature must cover and which fields were signed differently. There is no \
                  such route for live clients.",
        body: Shape::Members(&[
            optional("callbackUrl", Kind::Any, "As in the offer."),
            optional("fee", Kind::Any, "As in the offer."),
            optional("returnUrl", Kind::Any, "As in the offer."),
            optional("walletAddress", Kind::Any, "As in the offer."),
            optional("walletAddressTag", Kind::Any, "As in the offer."),
            optional("signature", Kind::Text, "The signature to explain."),
            optional("canonical", Kind::Text, "The text that you have signed, to be compared."),
        ]),
        request: r#"{"returnUrl": "https://shop.example/back",
            "canonical": "returnUrl=https://shop.example/back"}"#,
        answer: r#"{"canonical": "returnUrl=https%3A%2F%2Fshop.example%2Fback",
            "scheme": "hmac-sha256", "valid": false, "differs": [{"field": "returnUrl",
            "problem": "it was not percent-encoded"}],
            "explanation": "What was signed differs from what must be signed."}"#,
        also: &[(404, Code::RouteNotFound)],
        ..Doc::NONE
    };
    type Caller = Client;
    type Request = SignatureQuery;
    type Response = Json<Explanation>;

    fn read(input: &Input, _: &Client) -> Result<SignatureQuery> {
        let mut fields = Fields::from_object(&input.document)?;
        let signature = fields.text_or_null("signature", Code::SignatureNotString);
        let signed = fields.text_or_null("canonical", Code::RequestMalformed);
        let signable = Signable::read(input);
        let signature = signature.filter(|signature| !signature.is_empty());
        fields.finish(Some(SignatureQuery { signable, signature, signed }))
    }

    async fn call(core: &Core, client: Client, query: SignatureQuery) -> Result<Json<Explanation>> {
        let SignatureQuery { signable, signature, signed } = query;
        let fits = |text: &str| match &signature {
            Some(signature) => {
                let now = core.clock.now();
                match check(&client.tenant.signing_secrets, now, text, signature) {
                    Ok(()) => Ok(true),
                    Err(error) if error.is(Code::SignatureInvalid) => Ok(false),
                    Err(error) => Err(error),
                }
            }
            None => Ok(false),
        };
        let canonical = signable.canonical();
        let valid = fits(&canonical)?;
        let (differs, explanation) = match (&signature, signed) {
            _ if valid => (Vec::new(), "The signature fits."),
            (Some(text), signed) if !is_well_formed(text) => {
                let differs = signed.map(|signed| compare::differences(&signable, &signed));
                let explanation = "The signature is neither lower-case hex nor base64 of 32 bytes.";
                (differs.unwrap_or_default(), explanation)
            }
            (_, Some(signed)) => {
                explain(&signed, compare::differences(&signable, &signed), &canonical)
            }
            (None, None) => (Vec::new(), "There is no signature to look at."),
            (Some(_), None) => mistakes::find(&signable, fits)?,
        };
        let by_policy = client.tenant.policies.get(PolicyKind::Signature).is_some();
        let scheme = if by_policy { "policy" } else { "hmac-sha256" };
        Ok(Json(Explanation { canonical, scheme, valid, differs, explanation }))
    }
}

/// The fields to sign, the signature, and the text that the caller has signed.
#[derive(Debug)]
pub struct SignatureQuery {
    signable: Signable,
    signature: Option<String>,
    signed: Option<String>,
}

/// The explanation of a signature.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "SignatureFinding")]
pub struct Explanation {
    /// The text that the built-in scheme signs.
    canonical: String,
    /// `policy` where the partner's own policy decides instead of the built-in `hmac-sha256`.
    scheme: &'static str,
    /// True if the signature is that of the text.
    valid: bool,
    /// Fields that were signed in another way than they must be.
    differs: Vec<Difference>,
    /// The result, in a sentence.
    explanation: &'static str,
}

/// A field that was signed wrongly, and the mistake.
#[derive(Debug, JsonSchema, PartialEq, Eq, Serialize)]
#[schemars(rename = "SignatureDifference")]
pub(super) struct Difference {
    /// Its name.
    field: String,
    /// The mistake in signing it.
    problem: &'static str,
}

impl Difference {
    fn new(field: impl Into<String>, problem: &'static str) -> Self {
        Self { field: field.into(), problem }
    }
}

fn explain(
    signed: &str,
    differs: Vec<Difference>,
    canonical: &str,
) -> (Vec<Difference>, &'static str) {
    let explanation = if !differs.is_empty() {
        "What was signed differs from what must be signed."
    } else if signed == canonical {
        "The right text was signed, but with another secret or algorithm, or not as it stands."
    } else {
        "The fields are right, but not in alphabetical order, or not joined by & and =."
    };
    (differs, explanation)
}
