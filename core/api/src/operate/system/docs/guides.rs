//! Guides written by hand, in Markdown.

use maud::{Markup, PreEscaped};
use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

/// A guide: name of its page, title, text.
pub(super) struct Guide {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) text: &'static str,
}

const fn guide(name: &'static str, title: &'static str, text: &'static str) -> Guide {
    Guide { name, title, text }
}

/// Every guide, in the order in which a partner's developer reads them.
pub(super) const GUIDES: [Guide; 10] = [
    guide("start", "Start in five minutes", include_str!("guides/five-minutes.md")),
    guide("authentication", "Authentication", include_str!("guides/authentication.md")),
    guide("quote-to-order", "Quote to order", include_str!("guides/quote-to-order.md")),
    guide(
        "offers-and-signatures",
        "Offers and signatures",
        include_str!("guides/offers-and-signatures.md"),
    ),
    guide("receipts", "Receipts", include_str!("guides/receipts.md")),
    guide("webhooks", "Webhooks", include_str!("guides/webhooks.md")),
    guide(
        "idempotency-and-retries",
        "Idempotency and retries",
        include_str!("guides/idempotency-and-retries.md"),
    ),
    guide("sandbox", "Sandbox", include_str!("guides/sandbox.md")),
    guide("going-live", "Going live", include_str!("guides/going-live.md")),
    guide("changelog", "Changelog", include_str!("guides/changelog.md")),
];

/// A part of a guide under a heading of the second level.
pub(super) struct Section {
    /// The place of the heading on the guide's page.
    pub(super) anchor: String,
    pub(super) title: String,
}

impl Section {
    fn new(title: String) -> Self {
        let words = title.split(|c: char| !c.is_ascii_alphanumeric());
        let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
        Self { anchor: words.join("-").to_ascii_lowercase(), title }
    }
}

impl Guide {
    /// Its parts, in their order.
    pub(super) fn sections(&self) -> Vec<Section> {
        let mut sections = Vec::new();
        let mut heading: Option<String> = None;
        for event in self.events() {
            match event {
                Event::Start(Tag::Heading { level: HeadingLevel::H2, .. }) => {
                    heading = Some(String::new());
                }
                Event::Text(text) | Event::Code(text) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&text);
                    }
                }
                Event::End(TagEnd::Heading(_)) => {
                    sections.extend(heading.take().map(Section::new));
                }
                _ => {}
            }
        }
        sections
    }

    fn events(&self) -> Parser<'static> {
        Parser::new_ext(self.text, Options::ENABLE_TABLES)
    }
}

/// The guide as HTML, with an anchor at each part. Its text is this binary's own.
pub(super) fn render(guide: &Guide) -> Markup {
    let mut sections = guide.sections().into_iter();
    let events = guide.events().map(|event| match event {
        Event::Start(Tag::Heading { level: HeadingLevel::H2, classes, attrs, .. }) => {
            let id = sections.next().map(|section| section.anchor.into());
            Event::Start(Tag::Heading { level: HeadingLevel::H2, id, classes, attrs })
        }
        event => event,
    });
    let mut page = String::new();
    html::push_html(&mut page, events);
    PreEscaped(page)
}
