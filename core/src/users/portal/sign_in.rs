//! Signing in or registering on a page of ours: the form, and what it does.

use std::collections::HashMap;
use std::fmt;

use http::StatusCode;
use maud::{Markup, html};
use serde_json::{Value, json};
use url::form_urlencoded;

use crate::Core;
use crate::auth::caller::Client;
use crate::http::fields::Fields;
use crate::http::reply::Reply;
use crate::platform::error::{Code, Error, Result};
use crate::users::link_identifier::link;
use crate::users::register::register_on_page;
use crate::users::session::{Login, prove};
use rampart_types::{UserId, UserIdentifier, WebsiteLocale};

/// What a browser sent; of several members with one name the first counts.
pub struct Form(HashMap<String, String>);

impl fmt::Debug for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Form(…)")
    }
}

impl Form {
    /// Reads `application/x-www-form-urlencoded`; any bytes are some form.
    pub(crate) fn read(body: &[u8]) -> Self {
        let mut members = HashMap::new();
        for (name, value) in form_urlencoded::parse(body) {
            members.entry(name.into_owned()).or_insert_with(|| value.into_owned());
        }
        Self(members)
    }

    /// A member; empty when it was not sent.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// The registration that the API would be asked for.
    fn registration(&self, region: Option<&str>) -> Value {
        let locale: Option<WebsiteLocale> = region.and_then(|region| region.parse().ok());
        json!({
            "email": self.get("email").trim(),
            "password": self.get("password"),
            "country": self.get("country").trim().to_ascii_uppercase(),
            "privacyAgreement": self.get("privacy") == "yes",
            "websiteLanguage": locale.map(|locale| locale.language().to_owned()),
            "websiteCountry": locale.map(|locale| locale.country().as_str()),
        })
    }
}

/// Signs the user in, or registers it where that button was pressed, and links the identifier if
/// there is one.
///
/// # Errors
/// What [`complaint`] can tell the user, or a failure of ours.
pub(crate) async fn enter(
    core: &Core,
    client: &Client,
    form: &Form,
    (identifier, region): (Option<&UserIdentifier>, Option<&str>),
) -> Result<UserId> {
    if form.get("action") == "register" {
        let document = form.registration(region);
        let fields = Fields::of(&document)?;
        return register_on_page(core, client, fields, identifier.cloned()).await;
    }
    let user = log_in(core, client, form).await?;
    if let Some(identifier) = identifier {
        link(core, client.id(), user, identifier).await?;
    }
    Ok(user)
}

/// The user whose address and password the form has.
///
/// # Errors
/// As [`enter`].
pub(crate) async fn log_in(core: &Core, client: &Client, form: &Form) -> Result<UserId> {
    let document =
        json!({"emailAddress": form.get("email").trim(), "password": form.get("password")});
    prove(core, client, Login::read(Fields::of(&document)?)?).await
}

/// The page again, with what was wrong: `page` makes it.
///
/// # Errors
/// The failure, where it is none of the user's.
pub(crate) fn complaint(
    error: Error,
    page: impl FnOnce(StatusCode, &Markup) -> Reply,
) -> Result<Reply> {
    let Error::Refused(refusal) = error else { return Err(error) };
    let status = match refusal.has(Code::RateLimited) {
        true => StatusCode::TOO_MANY_REQUESTS,
        false => StatusCode::BAD_REQUEST,
    };
    let note = html! {
        div.note role="alert" {
            @for code in refusal.codes() { p { (code.message()) " " (code.solution()) } }
        }
    };
    let mut reply = page(status, &note);
    if let Some(seconds) = refusal.retry_after_seconds() {
        reply.set("retry-after", &seconds.to_string());
    }
    Ok(reply)
}

/// The form to sign in with.
pub(crate) fn login_form() -> Markup {
    html! {
        form method="post" {
            (email_and_password("current-password"))
            button.main type="submit" name="action" value="log-in" { "Sign in" }
        }
    }
}

/// The form to sign in with, and the one to register with.
pub(crate) fn forms() -> Markup {
    html! {
        (login_form())
        h2 { "New here?" }
        form method="post" {
            (email_and_password("new-password"))
            label {
                "Country (two letters)"
                input name="country" autocomplete="country" required pattern="[A-Za-z]{2}"
                    maxlength="2";
            }
            label.tick {
                input type="checkbox" name="privacy" value="yes" required;
                "I agree to the privacy statement"
            }
            button.main type="submit" name="action" value="register" { "Register" }
        }
    }
}

fn email_and_password(autocomplete: &str) -> Markup {
    html! {
        label {
            "E-mail address"
            input type="email" name="email" autocomplete="username" required maxlength="254";
        }
        label {
            "Password"
            input type="password" name="password" autocomplete=(autocomplete) required
                minlength="8" maxlength="64";
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_asks_for_what_the_api_would_be_asked_for() {
        let form = Form::read(b"email=+ada%40mail.example&password=a+b&country=nl&email=x");
        let asked = form.registration(Some("nl-be"));
        assert_eq!(asked["email"], "ada@mail.example");
        assert_eq!(asked["password"], "a b");
        assert_eq!((&asked["country"], &asked["websiteCountry"]), (&json!("NL"), &json!("BE")));
        assert_eq!(asked["privacyAgreement"], json!(false));
        assert_eq!(form.registration(None)["websiteLanguage"], Value::Null);
        assert_eq!(format!("{form:?}"), "Form(…)");
    }
}
