//! The password reset page: `GET` and `POST /reset-password/{token}`.
//!
//! The mailed token is the permission. Setting a password redeems it and ends every session of the
//! user. It proves the address, too: passkeys, an app and identifiers that were added before its first
//! proof go, because they may be a stranger's, who has registered the address of somebody else.

use http::{Method, StatusCode};
use maud::{Markup, html};
use url::form_urlencoded;

use super::account::page_texts;
use super::account_pages::sign_in_page::forgot_password_path;
use super::details::PASSWORD_CHARS;
use super::email_confirmation;
use super::identifier;
use super::one_time_token::{self, Purpose};
use super::second_factors;
use super::security_notice::{self, Changed};
use super::session;
use crate::Core;
use crate::auth::caller::Anyone;
use crate::auth::tokens::opaque;
use crate::endpoint::{Body, Endpoint};
use crate::http::html::components::{Field, field};
use crate::http::html::form_errors::FormErrors;
use crate::http::html::{PAGE_SCRIPT, Page, PageScripts};
use crate::http::language::Texts;
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::platform::crypto::Secret;
use crate::platform::error::Result;
use rampart_types::ClientId;

const PATH: &str = "/reset-password/{token}";

/// Shows the form.
pub struct Show;

impl Endpoint for Show {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = PATH;
    type Caller = Anyone;
    type Request = (Texts, String);
    type Response = Reply;

    fn read(input: &Input, _: &Anyone) -> Result<(Texts, String)> {
        Ok((Texts::of(input), input.param("token").to_owned()))
    }

    async fn call(core: &Core, _: Anyone, (texts, token): (Texts, String)) -> Result<Reply> {
        let holder = one_time_token::holder(&core.db, Purpose::ResetPassword, &token).await?;
        Ok(match holder {
            Some(holder) => {
                let texts = page_texts(core, texts, holder).await?;
                form(core, holder.client, StatusCode::OK, texts, &FormErrors::default())
            }
            None => dead_link_page(core, texts, &token),
        })
    }
}

/// Sets the password of the form.
pub struct Submit;

/// A submitted form.
#[derive(Debug)]
pub struct NewPassword {
    texts: Texts,
    token: String,
    /// `None` when it is too short or too long.
    password: Option<Secret>,
}

impl Endpoint for Submit {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = PATH;
    const IS_LOGIN: bool = true;
    const BODY: Body = Body::Form;
    type Caller = Anyone;
    type Request = NewPassword;
    type Response = Reply;

    fn read(input: &Input, _: &Anyone) -> Result<NewPassword> {
        let mut members = form_urlencoded::parse(&input.body);
        let password = members.find(|(name, _)| name == "password").map(|(_, value)| value);
        let fits = |text: &str| PASSWORD_CHARS.contains(&text.chars().count());
        let password = password.filter(|text| fits(text)).map(Secret::new);
        let texts = Texts::of(input);
        Ok(NewPassword { texts, token: input.param("token").to_owned(), password })
    }

    async fn call(
        core: &Core,
        _: Anyone,
        NewPassword { texts, token, password }: NewPassword,
    ) -> Result<Reply> {
        // A password is hashed only for a valid token.
        let holder = one_time_token::holder(&core.db, Purpose::ResetPassword, &token).await?;
        let Some(holder) = holder else { return Ok(dead_link_page(core, texts, &token)) };
        let texts = page_texts(core, texts, holder).await?;
        let Some(password) = password else {
            let errors = FormErrors::one("password", texts.get("reset-hint"));
            return Ok(form(core, holder.client, StatusCode::BAD_REQUEST, texts, &errors));
        };
        let hash = core.passwords.hash(password).await?;
        let mut tx = core.db.begin().await?;
        let redeemed = one_time_token::redeem(&mut tx, Purpose::ResetPassword, &token).await?;
        let Some(key) = redeemed else {
            return Ok(dead_link_page(core, texts, &token));
        };
        sqlx::query!(
            "update end_user set password_hash = $3 \
             where client_id = $1 and user_id = $2 and deleted_at is null",
            key.client.uuid(),
            key.user.uuid(),
            hash,
        )
        .execute(&mut *tx)
        .await?;
        session::end_all(&mut tx, core, key).await?;
        // First the proof: notices go to proven addresses alone.
        if email_confirmation::confirm_by_link(&mut tx, core, key).await? {
            second_factors::remove_passkeys(&mut tx, core, key).await?;
            second_factors::remove_authenticator_app(&mut tx, core, key).await?;
            // The stranger would go on through the partner, under the user's name.
            identifier::unlink_all(&mut tx, key).await?;
        }
        security_notice::mail(&mut tx, core, key, Changed::Password).await?;
        tx.commit().await?;
        Ok(done(core, key.client, texts))
    }
}

fn form(
    core: &Core,
    client: ClientId,
    status: StatusCode,
    texts: Texts,
    errors: &FormErrors,
) -> Reply {
    let [title, label, hint] = ["reset-title", "reset-new", "reset-hint"].map(|id| texts.get(id));
    let error = errors.of("password");
    let password = Field {
        kind: "password",
        // The error says the same.
        hint: error.is_none().then_some(&*hint),
        error,
        autocomplete: "new-password",
        chars_min: Some(*PASSWORD_CHARS.start()),
        ..Field::text("password", &label)
    };
    let body = html! {
        (errors.summary(texts))
        form method="post" {
            (field(&password))
            button.main type="submit" { (texts.get("reset-set")) }
        }
    };
    render(core, client, status, texts, &title, &body)
}

fn done(core: &Core, client: ClientId, texts: Texts) -> Reply {
    let title = texts.get("reset-done-title");
    let body = html! { p { (texts.get("reset-done")) } };
    render(core, client, StatusCode::OK, texts, &title, &body)
}

/// Renders a page with the name and the branding of the user's partner.
fn render(
    core: &Core,
    client: ClientId,
    status: StatusCode,
    texts: Texts,
    title: &str,
    body: &Markup,
) -> Reply {
    let scripts = Some(PageScripts::Own(PAGE_SCRIPT));
    let page = Page { scripts, ..Page::new(texts, &core.settings.pages, title) };
    match core.snapshots.current().tenants.get(&client) {
        Some(tenant) => page.branded(&tenant.name, &tenant.brand).render(status, body),
        None => page.render(status, body),
    }
}

/// The page of a link that is used, expired or invalid, with the way to a new one of the partner that
/// its token names.
fn dead_link_page(core: &Core, texts: Texts, token: &str) -> Reply {
    let snapshot = core.snapshots.current();
    let client = opaque::parse_client(token);
    let tenant = client.and_then(|client| snapshot.tenants.get(&client));
    let path = tenant.filter(|tenant| !tenant.suspended).and_then(|tenant| {
        forgot_password_path(texts, &snapshot.catalogue.page_regions, &tenant.slug)
    });
    let title = texts.get("dead-link-title");
    let body = html! {
        p { (texts.get("dead-link-reset")) }
        @if let Some(path) = path { p { a href=(path) { (texts.get("forgot-title")) } } }
    };
    Page::new(texts, &core.settings.pages, &title).render(StatusCode::NOT_FOUND, &body)
}
