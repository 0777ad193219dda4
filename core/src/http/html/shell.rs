//! The wide layout of pages for people at work: a header with navigation, the page below it.

use http::StatusCode;
use maud::{Markup, html};

use super::document::Document;
use super::{PAGE_SCRIPT, PageScripts};
use crate::http::language::Language;
use crate::http::reply::Reply;

/// The frame around the pages of one room, such as the console.
#[derive(Clone, Debug)]
pub struct Shell<'a> {
    /// Name of the room, which stands first in the header and last in the title.
    pub name: &'a str,
    /// Links to the pages, as path and label, in the order shown.
    pub navigation: &'a [(&'a str, &'a str)],
    /// Path of the entry that the page belongs to.
    pub current: &'a str,
    /// The person signed in, and the form that signs out. Empty if nobody is.
    pub account: Markup,
}

impl Shell<'_> {
    /// Renders a page inside the frame. Its only script is ours; forms stay with this service.
    pub fn render(&self, status: StatusCode, title: &str, body: &Markup) -> Reply {
        let layout = html! {
            a.skip href="#page" { "Skip to the page" }
            header.shell {
                b { (self.name) }
                @if !self.navigation.is_empty() {
                    nav aria-label="Pages" {
                        @for (path, label) in self.navigation {
                            a href=(path) aria-current=[(*path == self.current).then_some("page")] {
                                (label)
                            }
                        }
                    }
                }
                (self.account)
            }
            main #page .wide { h1 { (title) } (body) }
        };
        let whole = format!("{title} · {}", self.name);
        let document = Document {
            language: Language::English,
            title: &whole,
            refresh_seconds: None,
            form_action: "",
            scripts: Some(PageScripts::Own(PAGE_SCRIPT)),
            brand: None,
        };
        let mut reply = document.render(status, &layout);
        // Without it browsers hide the origin of forms, which tells them from those of other pages.
        reply.set("referrer-policy", "same-origin");
        reply
    }
}
