//! Whole documents of our pages, with the headers that they have in common.

use http::StatusCode;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::brand::{Accent, Brand};
use super::{PageScripts, STYLE, STYLE_SOURCE, source_digest};
use crate::http::language::Language;
use crate::http::reply::Reply;

/// A whole document but for its layout, and what its policy lets in.
pub(super) struct Document<'a> {
    pub(super) language: Language,
    pub(super) title: &'a str,
    /// Time after which the page is loaded again where no script runs.
    pub(super) refresh_seconds: Option<u32>,
    /// Sources that forms may lead to besides this service, with a space before them, or empty.
    pub(super) form_action: &'a str,
    pub(super) scripts: Option<PageScripts<'a>>,
    /// The brand whose accent and icon it has.
    pub(super) brand: Option<&'a Brand>,
}

impl Document<'_> {
    /// Renders head, layout and scripts, under a policy that lets in just these.
    pub(super) fn render(&self, status: StatusCode, layout: &Markup) -> Reply {
        let Self { language, title, refresh_seconds, form_action, scripts, brand } = *self;
        let accent = brand.and_then(|brand| brand.accent).map(Accent::style);
        let texts = language.texts();
        let copy_label = scripts.map(|_| texts.get("copy"));
        let copied_label = scripts.map(|_| texts.get("copied"));
        let document = html! {
            (DOCTYPE)
            html lang=(language.code()) {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="robots" content="noindex";
                    title { (title) }
                    @if let Some(seconds) = refresh_seconds {
                        noscript { meta http-equiv="refresh" content=(seconds); }
                    }
                    @if let Some(logo) = brand.and_then(|brand| brand.logo.as_deref()) {
                        // Of either type: its answer says which.
                        link rel="icon" href=(logo);
                    }
                    style { (PreEscaped(STYLE)) }
                    @if let Some(accent) = &accent { style { (PreEscaped(accent)) } }
                }
                body data-copy-label=[copy_label] data-copied-label=[copied_label] {
                    (layout)
                    @if let Some(scripts) = scripts { (scripts.markup()) }
                }
            }
        };
        let style = &*STYLE_SOURCE;
        let accent = accent.map_or_else(String::new, |text| format!(" {}", source_digest(&text)));
        let policy = format!(
            "default-src 'none'; style-src {style}{accent}; {}form-action 'self'{form_action}; \
             base-uri 'none'; frame-ancestors 'none'",
            scripts.map_or_else(String::new, |scripts| scripts.policy()),
        );
        let mut reply = Reply::html(status, document.into_string());
        reply.set("content-security-policy", &policy);
        reply.set("referrer-policy", "no-referrer");
        reply.set("x-content-type-options", "nosniff");
        reply.set("x-frame-options", "DENY");
        reply.set("cache-control", "no-store");
        reply
    }
}
