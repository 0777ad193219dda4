//! A page whose forms sign in, as those forms see it.

use maud::{Markup, html};

use crate::auth::caller::Client;
use crate::http::form::Form;
use crate::http::html::privacy::agreement;
use crate::http::language::Texts;
use crate::platform::settings::Pages;

/// Members that the forms carry along: what was typed into a form for a bank account.
const KEPT: [&str; 2] = ["iban", "holder"];

/// A page whose forms sign in.
#[derive(Clone, Copy)]
pub(crate) struct SignInPage<'a> {
    client: &'a Client,
    texts: Texts,
    settings: &'a Pages,
    /// The form that was sent to the page.
    sent: Option<&'a Form>,
}

/// Path of the page for forgotten passwords of the partner with this slug, in the reader's language;
/// `None` without a region in that language.
pub(crate) fn forgot_password_path(texts: Texts, regions: &[String], slug: &str) -> Option<String> {
    let region = texts.spoken_region(regions)?;
    Some(format!("/{region}/forgot-password?client={slug}"))
}

impl<'a> SignInPage<'a> {
    /// The page of a client in this language.
    pub(crate) const fn new(client: &'a Client, texts: Texts, settings: &'a Pages) -> Self {
        Self { client, texts, settings, sent: None }
    }

    /// The same after this form: what was typed into it for another step is not lost.
    pub(crate) const fn after(self, sent: Option<&'a Form>) -> Self {
        Self { sent, ..self }
    }

    /// The client.
    pub(super) const fn client(self) -> &'a Client {
        self.client
    }

    /// The texts in the page's language.
    pub(super) const fn texts(self) -> Texts {
        self.texts
    }

    /// The label of the box that agrees to the privacy statement.
    pub(super) fn agreement(self) -> Markup {
        agreement(self.texts, self.settings, &self.client.tenant.brand)
    }

    /// The link to the page for forgotten passwords.
    pub(super) fn forgot_password_link(self) -> Markup {
        let (regions, slug) = (&self.client.catalogue.page_regions, &self.client.tenant.slug);
        html! {
            @if let Some(path) = forgot_password_path(self.texts, regions, slug) {
                p { a href=(path) { (self.texts.get("forgot-title")) } }
            }
        }
    }

    /// The address that was typed into the form that signs in, or carried along since.
    pub(super) fn email(self) -> &'a str {
        let sent = self.sent.filter(|form| form.get("action") != "register");
        sent.map_or("", |form| form.get("email"))
    }

    /// The inputs that the form of a later step has besides its own: [`SignInPage::kept`], and the
    /// address, for the first forms again.
    pub(super) fn kept_by_step(self) -> Markup {
        let email = self.email();
        html! {
            (self.kept())
            @if !email.is_empty() { input type="hidden" name="email" value=(email); }
        }
    }

    /// The inputs that every form of the page has besides its own.
    pub(super) fn kept(self) -> Markup {
        let kept = KEPT.map(|name| (name, self.sent.map_or("", |form| form.get(name))));
        html! {
            @for (name, value) in kept {
                @if !value.is_empty() { input type="hidden" name=(name) value=(value); }
            }
        }
    }
}
