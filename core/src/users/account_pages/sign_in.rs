//! The forms to sign in or register on a page, and their actions.

use chrono::{DateTime, Utc};
use http::StatusCode;
use maud::{Markup, html};
use serde_json::{Value, json};

use super::sign_in_outcome::{SignIn, SignInStep, SignedIn};
use super::sign_in_page::SignInPage;
use super::{authenticator_app, passkey};
use crate::Core;
use crate::auth::caller::Client;
use crate::auth::user_credentials::lock_login;
use crate::http::fields::Fields;
use crate::http::form::Form;
use crate::http::html::components::{Field, Tone, field, toast};
use crate::http::html::form_errors::FormErrors;
use crate::http::language::Texts;
use crate::http::reply::Reply;
use crate::platform::error::{Code, Error, Refusal, Result};
use crate::users::authenticator_app::in_use_since;
use crate::users::link_identifier::link;
use crate::users::passkeys::sign_in::{challenge, credentials};
use crate::users::register::register_on_page;
use crate::users::session::{Login, verify_login};
use rampart_types::{UserId, UserIdentifier, WebsiteLocale};

/// Prefix of the fields' ids in the form that registers, beside which the one that signs in may stand.
const REGISTER: &str = "register-";

/// The registration of a form as a request of the API.
fn registration(form: &Form) -> Value {
    json!({
        "email": form.get("email").trim(),
        "password": form.get("password"),
        "country": form.get("country").trim().to_ascii_uppercase(),
        "privacyAgreement": form.get("privacy") == "yes",
    })
}

/// Signs the user in, or registers it if that button was pressed, and links the identifier, if any.
/// Mail to who registers is in the language of the region.
///
/// # Errors
/// A refusal that [`error_page`] can show, or an internal error.
pub(crate) async fn sign_in_or_register(
    core: &Core,
    client: &Client,
    texts: Texts,
    form: &Form,
    identifier: Option<&UserIdentifier>,
    region: Option<&str>,
) -> Result<SignIn> {
    if form.get("action") == "register" {
        let began_at = core.clock.now();
        let document = registration(form);
        let fields = Fields::from_object(&document)?;
        let locale: Option<WebsiteLocale> = region.and_then(|region| region.parse().ok());
        let user = register_on_page(core, client, fields, identifier.cloned(), locale).await?;
        return Ok(SignIn::Done(SignedIn::proven(user, began_at)));
    }
    let outcome = sign_in(core, client, texts, form).await?;
    if let SignIn::Done(signed_in) = &outcome {
        let key = client.key_of(signed_in.user);
        let mut tx = core.db.begin().await?;
        signed_in.lock(&mut tx, key).await?;
        if let Some(identifier) = identifier {
            link(&mut tx, core, key, identifier).await?;
        }
        tx.commit().await?;
    }
    Ok(outcome)
}

/// Takes the step of the form: address and password, after which a user with a second factor is asked
/// for it, or a passkey alone. What a sign-in that is done permits is stored under its lock.
///
/// # Errors
/// Those of [`sign_in_or_register`].
pub(crate) async fn sign_in(
    core: &Core,
    client: &Client,
    texts: Texts,
    form: &Form,
) -> Result<SignIn> {
    // Before the password is looked at: one that is changed meanwhile ends this sign-in too.
    let began_at = core.clock.now();
    match form.get("action") {
        "passkey" => match passkey::relying_party(core) {
            Some(party) => {
                core.user_attempts.count_challenge(core, client)?;
                let page = SignInPage::new(client, texts, &core.settings.pages).after(Some(form));
                let challenge = challenge(&core.db, core, client.id(), None).await?;
                let form = passkey::sign_in_form(page, &party, &challenge, &[]);
                Ok(incomplete(StatusCode::OK, html! {}, Some(form)))
            }
            None => Ok(refused(texts, "passkey-wrong")),
        },
        "passkey-answer" => Ok(match passkey::verify(core, client, form).await? {
            Some(user) => SignIn::Done(SignedIn::proven(user, began_at)),
            None => refused(texts, "passkey-wrong"),
        }),
        "app-code" => Ok(match authenticator_app::verify(core, client, form).await? {
            Some(user) => SignIn::Done(SignedIn::proven(user, began_at)),
            None => refused(texts, "app-code-wrong"),
        }),
        _ => {
            let user = log_in(core, client, form).await?;
            let page = SignInPage::new(client, texts, &core.settings.pages).after(Some(form));
            second_factor(core, page, user, began_at).await
        }
    }
}

/// Asks a user whose sign-in began at this time for the second factor, if there is one: a passkey, or a
/// code of an app.
///
/// # Errors
/// ER005 when the user's sessions were ended since.
async fn second_factor(
    core: &Core,
    page: SignInPage<'_>,
    user: UserId,
    began_at: DateTime<Utc>,
) -> Result<SignIn> {
    let (client, texts) = (page.client(), page.texts());
    let key = client.key_of(user);
    let known = credentials(core, key).await?;
    let mut conn = core.db.acquire().await?;
    let has_app = in_use_since(&mut conn, key).await?.is_some();
    drop(conn);
    if known.is_empty() && !has_app {
        return Ok(SignIn::Done(SignedIn::by_password(user, began_at)));
    }
    let mut tx = core.db.begin().await?;
    if !lock_login(&mut tx, key, Some(began_at)).await? {
        return Err(Code::LoginInvalid.into());
    }
    let mut forms = Vec::new();
    // Passkeys of an edge that had a name before it was at an address let nobody in, nor pass.
    if let Some(party) = passkey::relying_party(core).filter(|_| !known.is_empty()) {
        let challenge = challenge(&mut *tx, core, client.id(), Some(user)).await?;
        forms.push(passkey::sign_in_form(page, &party, &challenge, &known));
    }
    if has_app {
        let challenge = challenge(&mut *tx, core, client.id(), Some(user)).await?;
        forms.push(authenticator_app::sign_in_form(page, &challenge));
    }
    tx.commit().await?;
    if forms.is_empty() {
        return Ok(refused(texts, "passkey-wrong"));
    }
    let form = html! { @for form in &forms { (form) } };
    Ok(incomplete(StatusCode::OK, html! {}, Some(form)))
}

fn incomplete(status: StatusCode, note: Markup, form: Option<Markup>) -> SignIn {
    SignIn::Incomplete(SignInStep { status, note, form })
}

/// The first forms again, below a message.
fn refused(texts: Texts, message: &'static str) -> SignIn {
    incomplete(StatusCode::BAD_REQUEST, toast(Tone::Bad, &texts.get(message)), None)
}

/// Verifies the address and password of the form.
async fn log_in(core: &Core, client: &Client, form: &Form) -> Result<UserId> {
    let document =
        json!({"emailAddress": form.get("email").trim(), "password": form.get("password")});
    verify_login(core, client, Login::read(Fields::from_object(&document)?)?).await
}

/// The first forms of a page; those that were refused, with what was typed and why.
pub(crate) type FirstForms = fn(SignInPage<'_>, Option<&Refused<'_>>) -> Markup;

/// A form that was refused.
pub(crate) struct Refused<'a> {
    form: &'a Form,
    refusal: &'a Refusal,
}

impl Refused<'_> {
    /// True for the form of this action. One without any signs in.
    fn is_of(&self, action: &str) -> bool {
        let sent = self.form.get("action");
        sent == action || (sent != "register" && action == "log-in")
    }

    /// The refusal of a field's value, in the reader's language.
    fn error(&self, texts: Texts, name: &str) -> Option<String> {
        let code = self.refusal.codes().find(|code| field_name(*code) == Some(name));
        code.map(|code| refusal_text(texts, code))
    }
}

/// The field that a code is about.
const fn field_name(code: Code) -> Option<&'static str> {
    match code {
        Code::EmailInvalid | Code::EmailMissing | Code::EmailTaken => Some("email"),
        Code::PasswordTooShort | Code::PasswordTooLong | Code::PasswordMissing => Some("password"),
        Code::CountryMissing | Code::CountryCodeInvalid | Code::CountryUnknown => Some("country"),
        _ => None,
    }
}

/// Renders the page again: an error message in the reader's language, and the first forms as they were
/// sent.
///
/// # Errors
/// The internal error, if it is one.
pub(crate) fn error_page(
    page: SignInPage<'_>,
    error: Error,
    forms: FirstForms,
    form: &Form,
    show: impl FnOnce(StatusCode, &Markup, Option<&Markup>) -> Reply,
) -> Result<Reply> {
    let Error::Refused(refusal) = error else { return Err(error) };
    let (page, texts) = (page.after(Some(form)), page.texts());
    let refused = Refused { form, refusal: &refusal };
    let prefix = if refused.is_of("register") { REGISTER } else { "" };
    let (status, note) = match refusal.codes().any(|code| field_name(code).is_none()) {
        true => refusal_note(texts, &refusal),
        false => (StatusCode::BAD_REQUEST, summary(texts, prefix, &refusal)),
    };
    let mut reply = show(status, &note, Some(&forms(page, Some(&refused))));
    refusal.set_headers(&mut reply);
    Ok(reply)
}

/// The errors of a form, each with a link to its field.
fn summary(texts: Texts, prefix: &str, refusal: &Refusal) -> Markup {
    let mut errors = FormErrors::default();
    for code in refusal.codes() {
        if let Some(field) = field_name(code) {
            errors.add(field, refusal_text(texts, code));
        }
    }
    errors.summary_of(texts, prefix)
}

/// The status and the message of a refusal that a page shows.
pub(crate) fn refusal_note(texts: Texts, refusal: &Refusal) -> (StatusCode, Markup) {
    let status = match refusal.has(Code::RateLimited) {
        true => StatusCode::TOO_MANY_REQUESTS,
        false => StatusCode::BAD_REQUEST,
    };
    let note = html! {
        div.note.bad role="alert" tabindex="-1" autofocus {
            @for code in refusal.codes() { p { (refusal_text(texts, code)) } }
        }
    };
    (status, note)
}

/// A code in the reader's language: what people can put right on a page. Any other is named, for
/// whoever helps them: the catalogue's words are English, and advice for partners.
pub(crate) fn refusal_text(texts: Texts, code: Code) -> String {
    let id = match code {
        Code::LoginInvalid => "error-login",
        Code::RateLimited => "error-too-many",
        Code::EmailInvalid | Code::EmailMissing => "error-email",
        Code::EmailTaken => "error-email-taken",
        Code::PasswordTooShort | Code::PasswordTooLong | Code::PasswordMissing => "error-password",
        Code::CountryMissing | Code::CountryCodeInvalid => "error-country",
        Code::CountryUnknown => "error-country-unserved",
        Code::FiatAmountInvalid | Code::CryptoAmountInvalid | Code::AmountMissing => "error-amount",
        Code::WalletAddressInvalid => "error-wallet",
        Code::DestinationTagInvalid | Code::DestinationTagUnsupported => "error-tag",
        Code::CurrencyInMaintenance => "error-maintenance",
        Code::PaymentMethodUnavailable | Code::PaymentMethodUnknown => "error-method",
        Code::UserDisabled => "error-user-disabled",
        Code::OfferExpired | Code::OfferAlreadyConfirmed | Code::OfferNotFound => {
            "error-offer-ended"
        }
        Code::UserCredentialMissing => "error-sign-in",
        Code::UserIdentifierMismatch | Code::UserIdentifierTaken => "error-other-account",
        Code::CardVerificationFailed => "error-card-unverified",
        Code::AccountDisabled | Code::IbanAccountDisabled => "error-account-disabled",
        Code::AccountAlreadyVerified => "error-account-verified",
        Code::CardHolderMissing => "error-card-holder",
        Code::DocumentPendingReview => "check-document-received",
        _ => return texts.with("error-other", &[("code", code.as_str())]),
    };
    texts.get(id)
}

/// The login form, with the way to a new password.
pub(crate) fn login_form(page: SignInPage<'_>, refused: Option<&Refused<'_>>) -> Markup {
    let (refused, texts) = (refused.filter(|refused| refused.is_of("log-in")), page.texts());
    html! {
        form method="post" {
            (page.kept())
            (email_and_password(page, "", "current-password", refused))
            button.main type="submit" name="action" value="log-in" { (texts.get("sign-in")) }
        }
        (page.forgot_password_link())
        (passkey::offer(page))
    }
}

/// The login form and the registration form.
pub(crate) fn forms(page: SignInPage<'_>, refused: Option<&Refused<'_>>) -> Markup {
    let (again, texts) = (refused.filter(|refused| refused.is_of("register")), page.texts());
    let label = texts.get("country-code");
    let error = again.and_then(|refused| refused.error(texts, "country"));
    let country = Field {
        prefix: REGISTER,
        value: again.map_or("", |refused| refused.form.get("country")),
        error: error.as_deref(),
        autocomplete: "country",
        ..Field::text("country", &label)
    };
    let agreed = again.is_some_and(|refused| refused.form.get("privacy") == "yes");
    html! {
        (login_form(page, refused))
        h2 { (texts.get("new-here")) }
        form method="post" {
            (page.kept())
            (email_and_password(page, REGISTER, "new-password", again))
            (field(&country))
            label.tick {
                input type="checkbox" name="privacy" value="yes" required checked[agreed];
                span { (page.agreement()) }
            }
            button.main type="submit" name="action" value="register" { (texts.get("register")) }
        }
    }
}

/// The two fields, with the address as it was typed.
fn email_and_password(
    page: SignInPage<'_>,
    prefix: &str,
    autocomplete: &str,
    refused: Option<&Refused<'_>>,
) -> Markup {
    let texts = page.texts();
    let error = |name| refused.and_then(|refused| refused.error(texts, name));
    let labels = ["email", "password", "reset-hint"].map(|id| texts.get(id));
    let errors = ["email", "password"].map(error);
    let is_new = prefix == REGISTER && errors[1].is_none();
    let typed = if prefix == REGISTER { "" } else { page.email() };
    let email = Field {
        prefix,
        kind: "email",
        value: refused.map_or(typed, |refused| refused.form.get("email")),
        error: errors[0].as_deref(),
        autocomplete: "username",
        ..Field::text("email", &labels[0])
    };
    let password = Field {
        prefix,
        kind: "password",
        hint: is_new.then_some(&*labels[2]),
        error: errors[1].as_deref(),
        autocomplete,
        ..Field::text("password", &labels[1])
    };
    html! { (field(&email)) (field(&password)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::language::Language;

    #[test]
    fn every_refusal_is_in_the_readers_language() {
        let texts = Language::French.texts();
        for code in Code::ALL {
            let text = refusal_text(texts, *code);
            assert!(!text.contains(code.message()) && !text.contains(code.solution()), "{text}");
        }
    }

    #[test]
    fn a_form_becomes_a_request_of_the_api() {
        let form = Form::read(b"email=+ada%40mail.example&password=a+b&country=nl&email=x");
        let request = registration(&form);
        assert_eq!(request["email"], "ada@mail.example");
        assert_eq!(request["password"], "a b");
        assert_eq!(request["country"], "NL");
        assert_eq!(request["privacyAgreement"], json!(false));
    }
}
