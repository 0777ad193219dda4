//! The password reset page: `GET` and `POST /reset-password/{token}`.
//!
//! The mailed token is the permission. Setting a password redeems it and ends every session of the
//! user.

use http::{Method, StatusCode};
use maud::html;
use url::form_urlencoded;

use super::details::PASSWORD_CHARS;
use super::one_time_token::{self, Purpose};
use super::session;
use crate::Core;
use crate::auth::caller::Anyone;
use crate::endpoint::{Body, Endpoint};
use crate::http::html::{dead_link, render_page};
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::platform::crypto::Secret;
use crate::platform::error::{Code, Result};

const PATH: &str = "/reset-password/{token}";

/// Shows the form.
pub struct Show;

impl Endpoint for Show {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = PATH;
    const ERRORS: &'static [Code] = &[];
    type Caller = Anyone;
    type Request = String;
    type Response = Reply;

    fn read(input: &Input, _: &Anyone) -> Result<String> {
        Ok(input.param("token").to_owned())
    }

    async fn call(core: &Core, _: Anyone, token: String) -> Result<Reply> {
        let live = one_time_token::holder(core, Purpose::ResetPassword, &token).await?.is_some();
        Ok(if live { form(StatusCode::OK, None) } else { dead_link_page() })
    }
}

/// Sets the password of the form.
pub struct Submit;

/// A submitted form.
#[derive(Debug)]
pub struct NewPassword {
    token: String,
    /// `None` when it is too short or too long.
    password: Option<Secret>,
}

impl Endpoint for Submit {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = PATH;
    const ERRORS: &'static [Code] = &[];
    const BODY: Body = Body::Form;
    type Caller = Anyone;
    type Request = NewPassword;
    type Response = Reply;

    fn read(input: &Input, _: &Anyone) -> Result<NewPassword> {
        let mut members = form_urlencoded::parse(&input.body);
        let password = members.find(|(name, _)| name == "password").map(|(_, value)| value);
        let fits = |text: &str| PASSWORD_CHARS.contains(&text.chars().count());
        let password = password.filter(|text| fits(text)).map(Secret::new);
        Ok(NewPassword { token: input.param("token").to_owned(), password })
    }

    async fn call(
        core: &Core,
        _: Anyone,
        NewPassword { token, password }: NewPassword,
    ) -> Result<Reply> {
        // A password is hashed only for a valid token.
        if one_time_token::holder(core, Purpose::ResetPassword, &token).await?.is_none() {
            return Ok(dead_link_page());
        }
        let Some(password) = password else {
            let hint = "A password has 8 to 64 characters.";
            return Ok(form(StatusCode::BAD_REQUEST, Some(hint)));
        };
        let hash = core.passwords.hash(password).await?;
        let mut tx = core.db.begin().await?;
        let redeemed = one_time_token::redeem(&mut tx, Purpose::ResetPassword, &token).await?;
        let Some((client, user)) = redeemed else { return Ok(dead_link_page()) };
        sqlx::query!(
            "update end_user set password_hash = $3 \
             where client_id = $1 and user_id = $2 and deleted_at is null",
            client.uuid(),
            user.uuid(),
            hash,
        )
        .execute(&mut *tx)
        .await?;
        session::end_all(&mut tx, core, client, user).await?;
        tx.commit().await?;
        Ok(done())
    }
}

fn form(status: StatusCode, hint: Option<&str>) -> Reply {
    let (min, max) = (PASSWORD_CHARS.start(), PASSWORD_CHARS.end());
    let body = html! {
        h1 { "Choose a new password" }
        @if let Some(hint) = hint { p.note role="alert" { (hint) } }
        form method="post" {
            label {
                "New password"
                input type="password" name="password" autocomplete="new-password" required
                    minlength=(min) maxlength=(max);
            }
            button.main type="submit" { "Set the password" }
        }
    };
    render_page(status, "Choose a new password", &body, None)
}

fn done() -> Reply {
    let body = html! {
        h1 { "Your password is set" }
        p { "You can log in with it now. Everywhere else you have been logged out." }
    };
    render_page(StatusCode::OK, "Your password is set", &body, None)
}

fn dead_link_page() -> Reply {
    dead_link("Ask for a new one where you log in.")
}
