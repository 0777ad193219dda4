//! The account's page as its sections see it: of whom it is, and the permission that its forms carry.

use http::StatusCode;
use maud::{Markup, html};

use super::invitation::InvitedPage;
use super::passkey::SCRIPT;
use crate::http::html::{Page, PageScripts, back_link};
use crate::http::language::Texts;
use crate::http::reply::Reply;
use crate::users::account::Account;

/// The page of a user who has signed in.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) invited: InvitedPage<'a>,
    pub(super) account: &'a Account,
    /// Shows that the user has just signed in; a change uses it up.
    pub(super) challenge: &'a str,
}

impl View<'_> {
    pub(super) fn texts(&self) -> Texts {
        self.invited.link.texts
    }

    /// The member that every form of the page has.
    pub(super) fn challenge_input(&self) -> Markup {
        html! { input type="hidden" name="challenge" value=(self.challenge); }
    }

    /// A form with one button, and the members that it sends besides its action.
    pub(super) fn button(
        &self,
        action: &str,
        class: &str,
        members: &[(&str, &str)],
        label: &str,
    ) -> Markup {
        html! {
            form method="post" {
                (self.challenge_input())
                @for (name, value) in members { input type="hidden" name=(name) value=(value); }
                button.(class) type="submit" name="action" value=(action) { (label) }
            }
        }
    }

    /// Renders a page with this body and the way back to the partner.
    pub(super) fn page(&self, status: StatusCode, body: &Markup) -> Reply {
        page(self.invited, status, body)
    }
}

/// Renders a page of the account.
pub(super) fn page(invited: InvitedPage<'_>, status: StatusCode, body: &Markup) -> Reply {
    let InvitedPage { core, link, client, invitation } = invited;
    let (texts, tenant, return_url) = (link.texts, &client.tenant, &invitation.return_url);
    let title = texts.get("account-title");
    let body = html! { (body) (back_link(texts, return_url, &tenant.name)) };
    let page = Page::new(texts, &core.settings.pages, &title).branded(&tenant.name, &tenant.brand);
    let scripts = Some(PageScripts::Own(SCRIPT));
    Page { return_url: Some(return_url), scripts, ..page }.render(status, &body)
}
