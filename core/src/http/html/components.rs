//! Components of our pages. Each is a function from what it shows to markup; all of them stand in
//! every state on the gallery (`/_design`, in demos only).

use chrono::{DateTime, SecondsFormat, Utc};
use maud::{Markup, html};

use crate::http::language::{Language, Texts};

/// Meaning of a badge or a note, which its colour repeats and never says alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// No judgement.
    Neutral,
    /// Done, healthy.
    Good,
    /// Needs attention.
    Warning,
    /// Failed, refused.
    Bad,
    /// Worth knowing.
    Info,
}

impl Tone {
    const fn class(self) -> &'static str {
        match self {
            Self::Neutral => "neutral",
            Self::Good => "good",
            Self::Warning => "warning",
            Self::Bad => "bad",
            Self::Info => "info",
        }
    }
}

/// A short state, such as an order's status.
pub fn badge(tone: Tone, text: &str) -> Markup {
    html! { span.badge.(tone.class()) { (text) } }
}

/// A sentence that stands out. One that reports what has just happened is read aloud.
pub fn note(tone: Tone, body: &Markup) -> Markup {
    html! { div.note.(tone.class()) { (body) } }
}

/// The result of an action, read aloud when the page opens; the page opens at a bad one.
pub fn toast(tone: Tone, text: &str) -> Markup {
    let is_bad = tone == Tone::Bad;
    let (role, reach) = if is_bad { ("alert", Some("-1")) } else { ("status", None) };
    html! {
        p.note.(tone.class()) role=(role) tabindex=[reach] autofocus[is_bad] { (text) }
    }
}

/// Input of a form with its label, and its error if it was refused.
#[derive(Clone, Copy, Debug)]
pub struct Field<'a> {
    /// Name in the form; the element's id is `field-`, the prefix and this.
    pub name: &'a str,
    /// Tells fields of one name apart, on a page with several forms; else empty.
    pub prefix: &'a str,
    /// Text of the label.
    pub label: &'a str,
    /// `type` of the element, such as `email`; `textarea` is one of its own.
    pub kind: &'a str,
    /// Shown again after a refusal. Never that of a password.
    pub value: &'a str,
    /// A sentence under the label.
    pub hint: Option<&'a str>,
    /// The reason it was refused.
    pub error: Option<&'a str>,
    /// True if the form needs it.
    pub required: bool,
    /// `autocomplete` of the element; `off` says none.
    pub autocomplete: &'a str,
    /// `inputmode` of the element: the keys that a telephone shows.
    pub inputmode: Option<&'a str>,
    /// True for what is no word, such as an address on a chain: a telephone changes no letter of it.
    pub is_verbatim: bool,
    /// Fewest characters, which the browser asks for. A most would cut off what is pasted.
    pub chars_min: Option<usize>,
    /// Regular expression of the values that the browser sends.
    pub pattern: Option<&'a str>,
}

impl<'a> Field<'a> {
    /// A required line of text.
    pub const fn text(name: &'a str, label: &'a str) -> Self {
        Self {
            name,
            prefix: "",
            label,
            kind: "text",
            value: "",
            hint: None,
            error: None,
            required: true,
            autocomplete: "off",
            inputmode: None,
            is_verbatim: false,
            chars_min: None,
            pattern: None,
        }
    }

    /// A required code of digits, which an app shows or a mail brings.
    pub const fn one_time_code(name: &'a str, label: &'a str) -> Self {
        let (autocomplete, inputmode) = ("one-time-code", Some("numeric"));
        Self { autocomplete, inputmode, ..Self::text(name, label) }
    }
}

/// The markup of a field.
pub fn field(field: &Field<'_>) -> Markup {
    let invalid = field.error.map(|_| "true");
    let value = if field.kind == "password" { "" } else { field.value };
    let capitals = field.is_verbatim.then_some("none");
    let spelling = field.is_verbatim.then_some("false");
    labelled(field, |Ids { id, named, described }| {
        html! {
            @if field.kind == "textarea" {
                textarea #(id) name=(field.name) rows="4" required[field.required]
                    autocapitalize=[capitals] spellcheck=[spelling] aria-labelledby=(named)
                    aria-describedby=[described] aria-invalid=[invalid] { (value) }
            } @else {
                input #(id) type=(field.kind) name=(field.name) value=(value)
                    required[field.required] autocomplete=(field.autocomplete)
                    inputmode=[field.inputmode] minlength=[field.chars_min] pattern=[field.pattern]
                    autocapitalize=[capitals] spellcheck=[spelling] aria-labelledby=(named)
                    aria-describedby=[described] aria-invalid=[invalid];
            }
        }
    })
}

/// A box to tick.
pub fn tick(name: &str, ticked: bool, label: &Markup) -> Markup {
    html! {
        label.tick {
            input type="checkbox" name=(name) value="yes" checked[ticked];
            span { (label) }
        }
    }
}

/// An image to choose, by the camera if it is the `capture` of one, with a preview where a script runs.
pub fn image_field(field: &Field<'_>, accept: &str, capture: Option<&str>) -> Markup {
    labelled(field, |Ids { id, named, described }| {
        html! {
            input #(id) type="file" name=(field.name) accept=(accept) capture=[capture]
                required[field.required] aria-labelledby=(named) aria-describedby=[described]
                aria-invalid=[field.error.map(|_| "true")] data-preview="";
            img.preview alt="" hidden;
        }
    })
}

/// Ids of a control, of its label alone, and of its hint and error if there are any.
#[derive(Clone, Copy)]
pub(super) struct Ids<'a> {
    pub(super) id: &'a str,
    /// Names the control: hint and error, which stand in the same label, describe it.
    pub(super) named: &'a str,
    pub(super) described: Option<&'a str>,
}

/// A field's label, hint and error, and the `control` under them.
pub(super) fn labelled(field: &Field<'_>, control: impl FnOnce(Ids<'_>) -> Markup) -> Markup {
    let id = format!("field-{}{}", field.prefix, field.name);
    let (named, about) = (format!("{id}-label"), format!("{id}-about"));
    let described = (field.hint.is_some() || field.error.is_some()).then_some(about.as_str());
    html! {
        label for=(id) {
            span #(named) { (field.label) }
            @if described.is_some() {
                span #(about) {
                    @if let Some(hint) = field.hint { span.hint { (hint) } " " }
                    @if let Some(error) = field.error { span.field-error { (error) } }
                }
            }
            (control(Ids { id: &id, named: &named, described }))
        }
    }
}

/// The errors of a form on top of it, each a link to its field if it has one. The page opens at them,
/// with the focus there. Nothing if there are none.
pub fn error_summary(title: &str, errors: &[(&str, &str)]) -> Markup {
    html! {
        @if !errors.is_empty() {
            div.errors role="alert" tabindex="-1" autofocus {
                h2 { (title) }
                ul {
                    @for (name, text) in errors {
                        li {
                            @if name.is_empty() { (text) }
                            @else { a href={ "#field-" (name) } { (text) } }
                        }
                    }
                }
            }
        }
    }
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub enum Column<'a> {
    /// Left-aligned.
    Text(&'a str),
    /// Right-aligned, digits of one width.
    Amount(&'a str),
}

/// A table that scrolls by itself where it is wider than the page.
pub fn table(caption: &str, columns: &[Column<'_>], rows: &[Vec<Markup>]) -> Markup {
    let class = |index: usize| match columns.get(index) {
        Some(Column::Amount(_)) => Some("amount"),
        _ => None,
    };
    html! {
        div.scroll tabindex="0" role="region" aria-label=(caption) {
            table {
                caption { (caption) }
                thead {
                    tr {
                        @for (index, column) in columns.iter().enumerate() {
                            @let (Column::Text(name) | Column::Amount(name)) = column;
                            th scope="col" class=[class(index)] { (name) }
                        }
                    }
                }
                tbody {
                    @for row in rows {
                        tr {
                            @for (index, cell) in row.iter().enumerate() {
                                td class=[class(index)] { (cell) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A fact in a timeline.
#[derive(Clone, Debug)]
pub struct Fact {
    /// Time of the fact.
    pub at: DateTime<Utc>,
    /// The fact in a few words.
    pub title: String,
    /// Author, amount, reason.
    pub detail: Option<String>,
}

/// Facts in the order that they happened in.
pub fn timeline(facts: &[Fact]) -> Markup {
    html! {
        ol.timeline {
            @for fact in facts {
                li {
                    strong { (fact.title) } " "
                    @if let Some(detail) = &fact.detail { span { (detail) } }
                    span.hint { (time(fact.at)) }
                }
            }
        }
    }
}

/// A time on pages of people at work: those are in English. Else as [`time_in`].
pub fn time(at: DateTime<Utc>) -> Markup {
    time_in(Language::English.texts(), at)
}

/// A time with UTC to the second as its title: UTC too without a script, else the reader's.
pub(crate) fn time_in(texts: Texts, at: DateTime<Utc>) -> Markup {
    html! {
        time datetime=(at.to_rfc3339_opts(SecondsFormat::Secs, true))
            title=(at.format("%Y-%m-%d %H:%M:%S UTC")) {
            (texts.time(at))
        }
    }
}

/// The time that is left, counted down by a script; without one nothing, so say the time beside it.
pub fn countdown(until: DateTime<Utc>) -> Markup {
    let until = until.to_rfc3339_opts(SecondsFormat::Secs, true);
    html! { span.money hidden data-until=(until) {} }
}

/// An amount with its currency, as it was formatted.
pub fn money(formatted: &str) -> Markup {
    html! { span.money { (formatted) } }
}

/// Characters of an address that are shown at either end.
const ADDRESS_END_CHARS: usize = 8;

/// An address on a chain, with a button that copies it.
pub fn address(address: &str) -> Markup {
    html! { (short_address(address)) " " (copy_button(address)) }
}

/// A button that copies a text, which our script shows and names.
pub(crate) fn copy_button(text: &str) -> Markup {
    html! {
        button.small type="button" hidden data-copy=(text) data-done="✓" {
            // Drawn, because some fonts lack the sign.
            svg viewBox="0 0 16 16" width="14" height="14" aria-hidden="true" {
                path fill="none" stroke="currentColor" stroke-width="1.5"
                    d="M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3";
            }
        }
    }
}

/// An address on a chain, shortened in the middle, whole as its title.
pub fn short_address(address: &str) -> Markup {
    let chars: Vec<char> = address.chars().collect();
    let short = match chars.len() > 2 * ADDRESS_END_CHARS + 1 {
        true => {
            let (head, tail) =
                (&chars[..ADDRESS_END_CHARS], &chars[chars.len() - ADDRESS_END_CHARS..]);
            head.iter().chain(['…'].iter()).chain(tail).collect()
        }
        false => address.to_owned(),
    };
    html! { span.address title=(address) { (short) } }
}

/// An address or a transaction, shortened, with a link to the chain's explorer if it has one.
pub(crate) fn linked_address(id: &str, explorer_url: &str) -> Markup {
    html! {
        @if explorer_url.is_empty() { (short_address(id)) }
        @else { a href=(explorer_url) rel="noreferrer" { (short_address(id)) } }
    }
}

/// A partner's name with its logo, first on the pages that its shoppers see.
pub fn brand_line(name: &str, logo: Option<&str>) -> Markup {
    html! {
        p.brand {
            @if let Some(logo) = logo { img src=(logo) alt=""; }
            span { (name) }
        }
    }
}

/// A list without entries: why, and what to do.
pub fn empty_state(title: &str, text: &str) -> Markup {
    html! { div.empty { b { (title) } (text) } }
}

/// A figure with its name, and what it means.
pub fn stat(label: &str, value: &str, meaning: Option<&str>) -> Markup {
    html! {
        div.stat {
            span { (label) } b { (value) }
            @if let Some(meaning) = meaning { span { (meaning) } }
        }
    }
}

/// An action that asks before it acts: it opens in place, without a script.
pub fn dialog(label: &str, body: &Markup) -> Markup {
    form_dialog(label, false, body)
}

/// The same, which is open at once if its form was refused: the error stands at a field in it.
pub fn form_dialog(label: &str, is_refused: bool, body: &Markup) -> Markup {
    html! { details.dialog open[is_refused] { summary { (label) } div { (body) } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_has_its_label_as_its_name_and_the_rest_as_its_description() {
        let name = Field {
            prefix: "new-",
            hint: Some("As on your card."),
            error: Some("It is missing."),
            ..Field::text("name", "Name")
        };
        for kind in ["text", "textarea"] {
            let shown = field(&Field { kind, ..name }).into_string();
            for part in [
                "<span id=\"field-new-name-label\">Name</span>",
                "aria-labelledby=\"field-new-name-label\"",
                "aria-describedby=\"field-new-name-about\"",
            ] {
                assert!(shown.contains(part), "{part}: {shown}");
            }
        }
    }
}
