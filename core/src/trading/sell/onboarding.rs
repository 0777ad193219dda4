//! `POST /api/v2/sell/onboarding` signs the URL at which a user gets ready to sell, and
//! `POST /api/v2/sell/onboarding/verify` verifies such a URL.
//!
//! The signature covers the parameters that are set, encoded as in the URL (section 6.6 of the
//! contract): the signed text is the query itself.

use http::Method;
use rampart_plugins::contract::{Field, PolicyKind, Purpose, SignedPayload};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::Core;
use crate::auth::caller::Client;
use crate::endpoint::openapi::doc::{Doc, Kind, Shape, optional, required};
use crate::endpoint::{Body, Endpoint, Json, NoContent};
use crate::http::fields::Fields;
use crate::http::request::{Input, TARGET_BYTES_MAX};
use crate::platform::error::{Code, Error, Refusal, Result};
use crate::policies::kinds::signature::verify_signature;
use crate::tenancy::tenants::Scope;
use crate::trading::offers::signature;
use crate::users::accounts::AccountType;
use crate::users::identifiers;
use rampart_types::{Locale, ReturnUrl, UserIdentifier};

/// Path of the page.
pub(super) const PAGE: &str = "/sell/onboarding";

/// Parameters of the page, in canonical order.
const PARAMETERS: [&str; 5] =
    ["identifier", "kycShareToken", "locale", "payoutMethod", "returnUrl"];

/// Longest share token, in characters.
const SHARE_TOKEN_CHARS_MAX: usize = 2_048;

/// Creates a URL, version 2.
pub struct CreateV2;

impl Endpoint for CreateV2 {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/api/v2/sell/onboarding";
    const SCOPE: Option<Scope> = Some(Scope::OrdersWrite);
    const ERRORS: &'static [Code] = &[
        Code::ReturnUrlInvalid,
        Code::UserIdentifierMissing,
        Code::LocaleInvalid,
        Code::UserIdentifierLengthInvalid,
        Code::ReturnUrlBlank,
        Code::SigningSecretMissing,
        Code::ApiKeyNotFound,
        Code::ShareTokenBlank,
        Code::PayoutMethodInvalid,
    ];
    const BODY: Body = Body::Json;
    const IDEMPOTENT: bool = true;
    const DOC: Doc = Doc {
        summary: "Create a sell onboarding URL",
        details: "At the URL a user signs in or registers, verifies a payout account and is sent \
                  back to `returnUrl`; no order is placed. Use the URL exactly as returned.",
        body: Shape::Members(&[
            required("returnUrl", Kind::Text, "URL that the user is sent back to, unchanged."),
            optional("identifier", Kind::Sized(36, 255), "Your own identifier of the user."),
            optional("locale", Kind::Text, "In nl, en, de, fr or es; any region. Default `en`."),
            optional(
                "payoutMethods",
                Kind::List(&Kind::OneOf(&AccountType::NAMES)),
                "Methods that may be verified, at least one; by default every method. One that is \
                 switched off is not offered.",
            ),
            optional(
                "kycShareToken",
                Kind::Sized(1, SHARE_TOKEN_CHARS_MAX),
                "Of an identity check elsewhere. Given once to the provider that checks the \
                 identity of the user who signs in at the URL, then erased.",
            ),
        ]),
        request: r#"{
            "returnUrl": "https://shop.example/back", "locale": "nl-BE",
            "payoutMethods": ["bankTransfer", "walletpay"]
        }"#,
        answer: r#"{
            "onboardingUrl": "https://pay.example.com/sell/onboarding?locale=nl-BE&payoutMethod=bankTransfer%2Cwalletpay&returnUrl=https%3A%2F%2Fshop.example%2Fback&signature=6c9f…",
            "returnUrl": "https://shop.example/back",
            "partner": "shop",
            "identifier": null,
            "locale": "nl-BE",
            "payoutMethods": ["bankTransfer", "walletpay"]
        }"#,
        ..Doc::NONE
    };
    type Caller = Client;
    type Request = Onboarding;
    type Response = Json<Created>;

    fn read(input: &Input, _: &Client) -> Result<Onboarding> {
        Onboarding::read(Fields::from_object(&input.document)?)
    }

    async fn call(core: &Core, client: Client, request: Onboarding) -> Result<Json<Created>> {
        let query = request.query(core, &client)?;
        let signature = sign(core, &client, &query)?;
        let target = format!("{PAGE}?{query}&signature={signature}");
        // Only a share token makes a longer one.
        if target.len() > TARGET_BYTES_MAX {
            let detail = "with it the URL is longer than 8 KiB";
            return Err(Error::of_member_with(Code::ShareTokenBlank, "kycShareToken", detail));
        }
        core.onboarding_signers.remember(client.id(), &query, &request.return_url);
        let base = &core.settings.public_url;
        Ok(Json(Created {
            onboarding_url: format!("{base}{target}"),
            return_url: request.return_url.as_str().to_owned(),
            partner: client.tenant.slug.to_string(),
            identifier: request.identifier.map(|identifier| identifier.as_str().to_owned()),
            locale: request.locale.map(|locale| locale.as_str().to_owned()),
            payout_methods: request.payout_methods.as_deref().map(names),
        }))
    }
}

/// The parameters of a URL.
#[derive(Debug)]
pub struct Onboarding {
    return_url: ReturnUrl,
    identifier: Option<UserIdentifier>,
    locale: Option<Locale>,
    payout_methods: Option<Vec<AccountType>>,
    share_token: Option<String>,
}

impl Onboarding {
    fn read(mut fields: Fields<'_>) -> Result<Self> {
        let return_url = return_url(&mut fields);
        let identifier = identifier(&mut fields);
        let locale =
            fields.optional("locale", Code::LocaleInvalid, |value| value.as_str()?.parse().ok());
        let payout_methods =
            fields.optional("payoutMethods", Code::PayoutMethodInvalid, payout_methods);
        let share_token = fields.optional("kycShareToken", Code::ShareTokenBlank, share_token);
        let request = return_url.map(|return_url| Self {
            return_url,
            identifier,
            locale,
            payout_methods,
            share_token,
        });
        fields.finish(request)
    }

    /// The URL's query: the parameters that are set.
    fn query(&self, core: &Core, client: &Client) -> Result<String> {
        let seal = |identifier| identifiers::seal(core, client.id(), identifier);
        let identifier = self.identifier.as_ref().map(seal).transpose()?;
        let methods = self.payout_methods.as_deref().map(|methods| names(methods).join(","));
        let values = [
            identifier.as_deref(),
            self.share_token.as_deref(),
            self.locale.as_ref().map(Locale::as_str),
            methods.as_deref(),
            Some(self.return_url.as_str()),
        ];
        let set = PARAMETERS.into_iter().zip(values);
        Ok(signature::canonical(set.filter_map(|(name, value)| Some((name, value?)))))
    }
}

fn return_url(fields: &mut Fields<'_>) -> Option<ReturnUrl> {
    let blank = match fields.value("returnUrl") {
        None => true,
        Some(value) => value.as_str().is_some_and(|text| text.trim().is_empty()),
    };
    let code = if blank { Code::ReturnUrlBlank } else { Code::ReturnUrlInvalid };
    fields.required("returnUrl", code, |value| value.as_str()?.parse().ok())
}

fn identifier(fields: &mut Fields<'_>) -> Option<UserIdentifier> {
    let empty = fields.value("identifier").is_some_and(|value| value.as_str() == Some(""));
    let code = if empty { Code::UserIdentifierMissing } else { Code::UserIdentifierLengthInvalid };
    fields.optional("identifier", code, |value| value.as_str()?.parse().ok())
}

/// At least one payout method; one that is named twice counts once.
fn payout_methods(value: &Value) -> Option<Vec<AccountType>> {
    let mut methods = Vec::new();
    for item in value.as_array()? {
        let method = AccountType::from_name(item.as_str()?)?;
        if !methods.contains(&method) {
            methods.push(method);
        }
    }
    (!methods.is_empty()).then_some(methods)
}

fn names(methods: &[AccountType]) -> Vec<&'static str> {
    methods.iter().map(|method| method.as_str()).collect()
}

fn share_token(value: &Value) -> Option<String> {
    let text = value.as_str().filter(|text| !text.trim().is_empty())?;
    (text.chars().count() <= SHARE_TOKEN_CHARS_MAX).then(|| text.to_owned())
}

/// Signs a text. ER340 when the tenant has no API key, which the page needs to act for it; ER331
/// without a signing secret.
fn sign(core: &Core, client: &Client, text: &str) -> Result<String> {
    let (tenant, now) = (&client.tenant, core.clock.now());
    let mut refusal = Refusal::new();
    if !tenant.api_keys.iter().any(|key| key.expires_at.is_none_or(|end| now < end)) {
        refusal.add(Code::ApiKeyNotFound, None);
    }
    let signature = signature::sign(&tenant.signing_secrets, now, text);
    if signature.is_none() {
        refusal.add(Code::SigningSecretMissing, None);
    }
    signature.filter(|_| refusal.is_empty()).ok_or_else(|| refusal.into())
}

/// The URL and its parameters.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "SellOnboarding")]
#[serde(rename_all = "camelCase")]
pub struct Created {
    /// URL for the user, signed.
    onboarding_url: String,
    /// URL that the user is sent back to.
    return_url: String,
    /// The partner's slug.
    partner: String,
    /// As sent; sealed in the URL.
    identifier: Option<String>,
    /// Language of the page.
    locale: Option<String>,
    /// Payout methods that are offered.
    payout_methods: Option<Vec<&'static str>>,
}

/// Verifies a URL, version 2.
pub struct VerifyV2;

impl Endpoint for VerifyV2 {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/api/v2/sell/onboarding/verify";
    const SCOPE: Option<Scope> = Some(Scope::OrdersWrite);
    const ERRORS: &'static [Code] = &[
        Code::SignaturePolicyFailed,
        Code::SigningSecretMissing,
        Code::SignatureInvalid,
        Code::SignatureNotString,
        Code::SignatureRequired,
    ];
    const BODY: Body = Body::Json;
    const DOC: Doc = Doc {
        summary: "Verify a sell onboarding URL",
        details: "Send the parameters of the URL, decoded and otherwise unchanged. 204 says that \
                  the URL was made by the onboarding endpoint for this client, or signed by the \
                  client's own scheme where it has a signature policy, and is unaltered. ER324, \
                  ER338 and ER339 come from a signature policy of the client alone.",
        body: Shape::Members(&[
            optional("signature", Kind::Text, "The URL's signature."),
            optional("identifier", Kind::Text, "As in the URL."),
            optional("kycShareToken", Kind::Text, "As in the URL."),
            optional("locale", Kind::Text, "As in the URL."),
            optional("payoutMethod", Kind::Text, "As in the URL, joined by commas."),
            optional("returnUrl", Kind::Text, "As in the URL."),
        ]),
        request: r#"{
            "signature": "6c9f0d1e2b3a495867768594a3b2c1d0e0f1029384756677889900aabbccddee",
            "locale": "nl-BE", "payoutMethod": "bankTransfer,walletpay",
            "returnUrl": "https://shop.example/back"
        }"#,
        ..Doc::NONE
    };
    type Caller = Client;
    type Request = SignedQuery;
    type Response = NoContent;

    fn read(input: &Input, _: &Client) -> Result<SignedQuery> {
        SignedQuery::read(&Fields::from_object(&input.document)?)
    }

    async fn call(core: &Core, client: Client, query: SignedQuery) -> Result<NoContent> {
        let tenant = &client.tenant;
        let signature = query.signature.as_deref().unwrap_or_default();
        let now = core.clock.now();
        let built_in = signature::check(&tenant.signing_secrets, now, &query.query(), signature);
        // A policy knows the URLs that the partner signs itself, not those that were made here.
        if built_in.is_err()
            && tenant.policies.get(PolicyKind::Signature).is_some()
            && let Some(decision) = verify_signature(core, &client, query.payload()).await?
        {
            decision.consume(core, &mut *core.db.acquire().await?).await?;
            return Ok(NoContent);
        }
        built_in.map(|()| NoContent)
    }
}

/// Parameters and signature of a URL to verify.
#[derive(Debug)]
pub struct SignedQuery {
    parameters: Vec<(&'static str, String)>,
    signature: Option<String>,
}

impl SignedQuery {
    /// Reads the parameters. An empty one counts as set and so fails: genuine URLs have none.
    ///
    /// # Errors
    /// ER336 for a parameter of another type than text.
    fn read(fields: &Fields<'_>) -> Result<Self> {
        let text = |name| match fields.value(name) {
            None => Ok(None),
            Some(value) => {
                value.as_str().map(str::to_owned).ok_or(Code::SignatureInvalid).map(Some)
            }
        };
        let mut parameters = Vec::new();
        for name in PARAMETERS {
            if let Some(value) = text(name)? {
                parameters.push((name, value));
            }
        }
        Ok(Self { parameters, signature: text("signature")?.filter(|text| !text.is_empty()) })
    }

    fn query(&self) -> String {
        signature::canonical(self.parameters.iter().map(|(name, value)| (*name, value.as_str())))
    }

    /// The policy's input: the request for the page.
    fn payload(self) -> SignedPayload {
        let signed = self.signature.as_deref().map(|text| ("signature", text));
        let all = self.parameters.iter().map(|(name, value)| (*name, value.as_str()));
        let query = signature::canonical(all.chain(signed));
        let field = |(name, value): (&str, String)| Field { name: name.to_owned(), value };
        SignedPayload {
            purpose: Purpose::Onboarding,
            fields: self.parameters.into_iter().map(field).collect(),
            claimed: self.signature,
            method: Method::GET.to_string(),
            path: PAGE.to_owned(),
            query,
            headers: Vec::new(),
            body: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn codes(document: &Value) -> Vec<&'static str> {
        match Onboarding::read(Fields::from_object(document).unwrap()) {
            Err(Error::Refused(refusal)) => refusal.codes().map(Code::as_str).collect(),
            _ => Vec::new(),
        }
    }

    #[test]
    fn parameters_are_in_canonical_order() {
        assert!(PARAMETERS.is_sorted());
    }

    #[test]
    fn every_violation_is_reported_at_once() {
        let wrong = json!({"identifier": "short", "locale": "xx-XX", "payoutMethods": [],
            "kycShareToken": " ", "returnUrl": "javascript:alert(1)"});
        assert_eq!(codes(&wrong), ["ER047", "ER102", "ER099", "ER417", "ER367"]);
        assert_eq!(codes(&json!({"identifier": ""})), ["ER308", "ER053"]);
    }

    #[test]
    fn a_parameter_that_is_not_a_text_is_not_genuine() {
        let query = json!({"locale": 7, "signature": "ab"});
        assert!(
            SignedQuery::read(&Fields::from_object(&query).unwrap())
                .unwrap_err()
                .is(Code::SignatureInvalid)
        );
    }
}
