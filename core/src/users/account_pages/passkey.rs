//! The forms of passkeys on pages: the one that signs in, and those that add and remove them. The
//! browser's part is a script, without which the page says so.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use maud::{Markup, html};
use serde_json::{Value, json};

use super::sign_in_page::SignInPage;
use crate::Core;
use crate::auth::caller::Client;
use crate::auth::webauthn::{
    ALGORITHMS, Assertion, CREDENTIAL_ID_BYTES_MAX, Registration, RelyingParty, decode,
};
use crate::http::form::Form;
use crate::http::html::components::{Field, Tone, field, time_in, toast};
use crate::http::html::form_errors::{FormErrors, TypedForm};
use crate::http::language::Texts;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::users::account::Account;
use crate::users::passkeys::sign_in::{self, Answer, user_handle};
use crate::users::passkeys::{self, Added, NAME_CHARS_MAX, PASSKEYS_MAX, Passkey};
use rampart_types::{UserId, plain_text};

/// Our script of pages with passkeys, and what every page with a script has.
pub(crate) const SCRIPT: &str =
    concat!(include_str!("../../http/html/page.js"), include_str!("../../http/html/passkey.js"));

/// Action of the form that adds a passkey.
const ADD: &str = "passkey-add";
/// Name of the field with the name of a passkey.
const NAME: &str = "name";

/// A ceremony of a browser with an authenticator.
#[derive(Clone, Copy)]
enum Ceremony {
    /// The user is proven by a passkey.
    Authentication,
    /// A passkey is made.
    Registration,
}

impl Ceremony {
    /// The method of the browser's `navigator.credentials`.
    const fn method(self) -> &'static str {
        match self {
            Self::Authentication => "get",
            Self::Registration => "create",
        }
    }

    /// Members of the authenticator's answer to the challenge.
    const fn answer(self) -> &'static [&'static str] {
        match self {
            Self::Authentication => {
                &["credential", "clientData", "authenticatorData", "signature", "userHandle"]
            }
            Self::Registration => &["clientData", "authenticatorData", "publicKey"],
        }
    }
}

/// The relying party of this edge; `None` where its URL is none that passkeys can be bound to.
pub(super) fn relying_party(core: &Core) -> Option<RelyingParty> {
    RelyingParty::at(&core.settings.public_url)
}

/// The button that begins a sign-in with a passkey alone. A script shows it where a browser can.
pub(super) fn offer(page: SignInPage<'_>) -> Markup {
    html! {
        div hidden data-passkey {
            form method="post" {
                (page.kept())
                button type="submit" name="action" value="passkey" {
                    (page.texts().get("passkey-sign-in"))
                }
            }
        }
    }
}

/// The form in which the user of the challenge proves itself, or whoever has a passkey without one.
pub(super) fn sign_in_form(
    page: SignInPage<'_>,
    party: &RelyingParty,
    challenge: &str,
    known: &[Vec<u8>],
) -> Markup {
    let texts = page.texts();
    let options = json!({"challenge": challenge, "rp": {"id": party.id}, "known": names(known)});
    let body = html! {
        (page.kept_by_step())
        button.main type="submit" { (texts.get("passkey-use")) }
    };
    html! {
        h2 { (texts.get("passkey-step-title")) }
        p { (texts.get("passkey-step")) }
        (ceremony_form(texts, Ceremony::Authentication, "passkey-answer", &options, &body))
    }
}

/// The form in which a user who has older passkeys proves itself for an erasure; `None` for others.
/// `visit` is the challenge of the account's page.
///
/// # Errors
/// When the database cannot be used.
pub(super) async fn erasure_form(
    core: &Core,
    client: &Client,
    user: UserId,
    texts: Texts,
    visit: &str,
) -> Result<Option<Markup>> {
    let known = sign_in::older_credentials(core, client.key_of(user)).await?;
    let Some(party) = relying_party(core).filter(|_| !known.is_empty()) else {
        return Ok(None);
    };
    let challenge = sign_in::challenge(&core.db, core, client.id(), Some(user)).await?;
    let options = json!({"challenge": challenge, "rp": {"id": party.id}, "known": names(&known)});
    let body = html! {
        input type="hidden" name="visit" value=(visit);
        button.danger type="submit" { (texts.get("erase-by-passkey")) }
    };
    Ok(Some(ceremony_form(texts, Ceremony::Authentication, "erase", &options, &body)))
}

/// True if the answer of that form proves the user, without telling what is wrong.
///
/// # Errors
/// Code 920 after too many attempts; when the database cannot be used.
pub(super) async fn proves_erasure(
    core: &Core,
    client: &Client,
    user: UserId,
    form: &Form,
) -> Result<bool> {
    let sent = decode(form.get("credential"), CREDENTIAL_ID_BYTES_MAX);
    let known = sign_in::older_credentials(core, client.key_of(user)).await?;
    if !sent.is_some_and(|id| known.contains(&id)) {
        return Ok(false);
    }
    Ok(verify(core, client, form).await? == Some(user))
}

/// Verifies the answer of a form that signs in; `None` without telling what is wrong.
///
/// # Errors
/// Code 920 after too many attempts; when the database cannot be used.
pub(super) async fn verify(core: &Core, client: &Client, form: &Form) -> Result<Option<UserId>> {
    let Some(party) = relying_party(core) else { return Ok(None) };
    let answer = Answer {
        challenge: form.get("challenge"),
        credential: form.get("credential"),
        user_handle: form.get("userHandle"),
        assertion: Assertion {
            client_data: form.get("clientData"),
            authenticator_data: form.get("authenticatorData"),
            signature: form.get("signature"),
        },
    };
    sign_in::verify(core, client, &party, &answer).await
}

/// Adds the passkey of the form to the user who got its challenge, and says what came of it, also at the
/// form's field. `visit` is the challenge in its place.
///
/// # Errors
/// When the database cannot be used.
pub(super) async fn add(
    core: &Core,
    client: &Client,
    user: UserId,
    visit: &str,
    texts: Texts,
    form: &Form,
) -> Result<(Markup, FormErrors)> {
    let Some(name) = plain_text(form.get(NAME), NAME_CHARS_MAX) else {
        let count = NAME_CHARS_MAX.to_string();
        let wrong = texts.with("passkey-name-wrong", &[("count", &count)]);
        let errors = FormErrors::one(NAME, wrong);
        return Ok((errors.summary(texts), errors));
    };
    let made = Registration {
        client_data: form.get("clientData"),
        authenticator_data: form.get("authenticatorData"),
        public_key: form.get("publicKey"),
    };
    let credential =
        relying_party(core).and_then(|party| party.register(form.get("challenge"), &made));
    let key = client.key_of(user);
    let added = match &credential {
        Some(credential) => passkeys::add(core, key, visit, &name, credential).await?,
        None => Added::Refused,
    };
    Ok(match added {
        Added::Stored => (toast(Tone::Good, &texts.get("passkey-added")), FormErrors::default()),
        Added::Refused => {
            let wrong = texts.get("passkey-wrong");
            (toast(Tone::Bad, &wrong), FormErrors::one("", wrong))
        }
    })
}

/// Removes the passkey that the form names, if it is the user's.
///
/// # Errors
/// When the database cannot be written.
pub(super) async fn remove(
    core: &Core,
    client: &Client,
    user: UserId,
    visit: &str,
    texts: Texts,
    form: &Form,
) -> Result<Markup> {
    let id = decode(form.get("credential"), CREDENTIAL_ID_BYTES_MAX).unwrap_or_default();
    Ok(match passkeys::remove(core, client.key_of(user), visit, &id).await? {
        true => toast(Tone::Good, &texts.get("passkey-removed")),
        false => toast(Tone::Bad, &texts.get("passkey-wrong")),
    })
}

/// The user's passkeys with the forms that change them. `challenge` is for one change, `typed` the form
/// that the page follows.
///
/// # Errors
/// When the database cannot be read.
pub(super) async fn section(
    conn: &mut Connection,
    core: &Core,
    client: &Client,
    account: &Account,
    texts: Texts,
    challenge: &str,
    typed: TypedForm<'_>,
) -> Result<Markup> {
    let Some(party) = relying_party(core) else { return Ok(html! {}) };
    let passkeys = passkeys::list(conn, core, account.key()).await?;
    let known: Vec<_> = passkeys.iter().map(|passkey| passkey.id.clone()).collect();
    let email = account.personal.email.as_ref().map_or("", |email| email.as_str());
    let options = json!({
        "challenge": challenge,
        "rp": {"id": party.id, "name": client.tenant.name},
        "user": {"id": user_handle(account.user), "name": email, "displayName": email},
        "algorithms": ALGORITHMS,
        "known": names(&known),
    });
    let is_full = i64::try_from(passkeys.len()).is_ok_and(|count| count >= PASSKEYS_MAX);
    Ok(html! {
        h2 { (texts.get("passkeys-title")) }
        p { (texts.get("passkeys-about")) }
        @for passkey in &passkeys { (row(texts, passkey, challenge)) }
        @if is_full { p { (texts.get("passkey-limit")) } }
        @else { (add_form(texts, &options, typed)) }
    })
}

fn row(texts: Texts, passkey: &Passkey, challenge: &str) -> Markup {
    html! {
        div.panel {
            strong { (passkey.name) }
            p.hint {
                (texts.get("passkey-made")) " " (time_in(texts, passkey.created_at)) br;
                (texts.get("passkey-used")) " "
                @match passkey.last_used_at {
                    Some(at) => (time_in(texts, at)),
                    None => (texts.get("passkey-never")),
                }
            }
            form method="post" {
                input type="hidden" name="challenge" value=(challenge);
                input type="hidden" name="credential" value=(URL_SAFE_NO_PAD.encode(&passkey.id));
                button.danger type="submit" name="action" value="passkey-remove" {
                    (texts.with("passkey-remove", &[("name", &passkey.name)]))
                }
            }
        }
    }
}

/// The form that adds a passkey, with the name that was typed if that has failed.
fn add_form(texts: Texts, options: &Value, TypedForm { form, errors }: TypedForm<'_>) -> Markup {
    let is_refused = form.get("action") == ADD && !errors.is_empty();
    // Held against the name before the device makes a passkey.
    let pattern = format!(r"\s*\S.{{0,{}}}", NAME_CHARS_MAX - 1);
    let label = texts.get("passkey-name");
    let name = Field {
        value: if is_refused { form.get(NAME) } else { "" },
        error: errors.of(NAME),
        pattern: Some(&pattern),
        ..Field::text(NAME, &label)
    };
    let body = html! {
        (field(&name))
        button type="submit" { (texts.get("passkey-add")) }
    };
    ceremony_form(texts, Ceremony::Registration, ADD, options, &body)
}

/// A form that the script fills in with the authenticator's answer before it is sent.
fn ceremony_form(
    texts: Texts,
    ceremony: Ceremony,
    action: &str,
    options: &Value,
    body: &Markup,
) -> Markup {
    let challenge = options["challenge"].as_str().unwrap_or_default();
    let method = ceremony.method();
    html! {
        p.note data-no-passkey { (texts.get("passkey-script")) }
        div hidden data-passkey {
            form method="post" data-ceremony=(method) data-options=(options.to_string()) {
                input type="hidden" name="action" value=(action);
                input type="hidden" name="challenge" value=(challenge);
                @for name in ceremony.answer() { input type="hidden" name=(name); }
                (body)
                p.field-error role="alert" data-text=(texts.get("passkey-wrong")) {}
            }
        }
    }
}

fn names(ids: &[Vec<u8>]) -> Vec<String> {
    ids.iter().map(|id| URL_SAFE_NO_PAD.encode(id)).collect()
}
