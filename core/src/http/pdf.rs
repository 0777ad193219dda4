//! Documents of one page as PDF (ISO 32000-1): a title, terms with their values, notes, and a file
//! that travels inside. `font` has what the page needs of DejaVu Sans, whose letters are those of all
//! our languages and of most names.

mod font;

use pdf_writer::types::AssociationKind;
use pdf_writer::{Content, Finish as _, Name, Pdf, Rect, Ref, Str, TextStr};

use self::font::Font;
use crate::platform::error::Result;

/// The page, A4. All lengths are in points, and whole.
const PAGE_WIDTH: i16 = 595;
const PAGE_HEIGHT: i16 = 842;
const MARGIN: i16 = 56;
/// The columns of paragraphs, of terms and of their values.
const PAGE_COLUMN: Column = Column { left: MARGIN, right: 539 };
const TERM_COLUMN: Column = Column { left: MARGIN, right: 200 };
const VALUE_COLUMN: Column = Column { left: 210, right: 539 };
const TITLE_SIZE: i16 = 20;
const TEXT_SIZE: i16 = 9;
const LINE_HEIGHT: i16 = 15;
const TERM_GAP: i16 = 4;

const CATALOGUE: Ref = Ref::new(1);
const PAGES: Ref = Ref::new(2);
const ONLY_PAGE: Ref = Ref::new(3);
const CONTENT: Ref = Ref::new(4);
const INFO: Ref = Ref::new(5);
const FILE: Ref = Ref::new(6);
const FILE_CONTENT: Ref = Ref::new(7);
/// The font, and what belongs to it in the numbers behind.
const FONT: Ref = Ref::new(8);
/// Its name on the page.
const FONT_NAME: Name<'static> = Name(b"F");

/// The places of a page between which lines stand.
#[derive(Clone, Copy)]
struct Column {
    left: i16,
    right: i16,
}

impl Column {
    const fn width(self) -> i16 {
        self.right - self.left
    }
}

/// A document.
#[derive(Debug)]
pub(crate) struct Document<'a> {
    /// Code of ISO 639-1.
    pub(crate) language: &'static str,
    pub(crate) title: &'a str,
    /// The line below the title.
    pub(crate) subtitle: &'a str,
    /// Terms and their values.
    pub(crate) terms: &'a [(String, String)],
    /// Paragraphs at the end.
    pub(crate) notes: &'a [String],
    /// Name and content of the file inside.
    pub(crate) file: (&'static str, &'a [u8]),
}

impl Document<'_> {
    /// The bytes. What does not fit on the page is cut off.
    ///
    /// # Errors
    /// When the font cannot be read, which is our fault.
    pub(crate) fn write(&self) -> Result<Vec<u8>> {
        let mut font = Font::read()?;
        let content = self.content(&mut font);
        let mut pdf = Pdf::new();
        let mut catalogue = pdf.catalog(CATALOGUE);
        catalogue.pages(PAGES).lang(TextStr(self.language));
        catalogue.names().embedded_files().names().insert(Str(self.file.0.as_bytes()), FILE);
        catalogue.finish();
        pdf.document_info(INFO).title(TextStr(self.title));
        pdf.pages(PAGES).kids([ONLY_PAGE]).count(1);
        let mut page = pdf.page(ONLY_PAGE);
        page.media_box(Rect::new(0.0, 0.0, PAGE_WIDTH.into(), PAGE_HEIGHT.into()));
        page.parent(PAGES).contents(CONTENT);
        page.resources().fonts().pair(FONT_NAME, FONT);
        page.finish();
        pdf.stream(CONTENT, &content.finish());
        font.write(&mut pdf, FONT)?;
        let (name, content) = self.file;
        let mut file = pdf.file_spec(FILE);
        file.path(Str(name.as_bytes())).unic_file(TextStr(name)).embedded_file(FILE_CONTENT);
        file.association_kind(AssociationKind::Data);
        file.finish();
        pdf.embedded_file(FILE_CONTENT, content);
        Ok(pdf.finish())
    }

    fn content(&self, font: &mut Font) -> Content {
        let mut lines =
            Lines { content: Content::new(), font, y: PAGE_HEIGHT - MARGIN - TITLE_SIZE };
        lines.show(self.title, TITLE_SIZE, MARGIN);
        lines.y -= LINE_HEIGHT + LINE_HEIGHT / 2;
        lines.paragraph(self.subtitle, PAGE_COLUMN);
        lines.y -= LINE_HEIGHT;
        for (term, value) in self.terms {
            let above = lines.y;
            lines.paragraph(term, TERM_COLUMN);
            let below = std::mem::replace(&mut lines.y, above);
            lines.paragraph(value, VALUE_COLUMN);
            lines.y = lines.y.min(below) - TERM_GAP;
        }
        for note in self.notes {
            lines.y -= LINE_HEIGHT;
            lines.paragraph(note, PAGE_COLUMN);
        }
        lines.content
    }
}

/// Lines of a page, from the top.
struct Lines<'a> {
    content: Content,
    font: &'a mut Font,
    /// Position of the next one.
    y: i16,
}

impl Lines<'_> {
    fn show(&mut self, text: &str, size: i16, x: i16) {
        if self.y < MARGIN {
            return;
        }
        let glyphs = self.font.encode(text);
        self.content.begin_text().set_font(FONT_NAME, size.into());
        self.content.next_line(x.into(), self.y.into());
        self.content.show(Str(&glyphs)).end_text();
    }

    /// As many lines as a text needs in a column, and the page has.
    fn paragraph(&mut self, text: &str, column: Column) {
        let fits = |line: &str| self.font.fits(line, TEXT_SIZE, column.width());
        for line in broken(text, fits) {
            if self.y < MARGIN {
                return;
            }
            self.show(&line, TEXT_SIZE, column.left);
            self.y -= LINE_HEIGHT;
        }
    }
}

/// A text in lines that fit, broken at spaces that are not no-break ones, and within a word that is
/// longer than a line. A single letter always fits.
fn broken(text: &str, fits: impl Fn(&str) -> bool) -> Vec<String> {
    let (mut lines, mut line) = (Vec::new(), String::new());
    let breaks = |c: char| c.is_whitespace() && !matches!(c, '\u{a0}' | '\u{202f}');
    for word in text.split(breaks).filter(|word| !word.is_empty()) {
        let longer = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
        if fits(&longer) {
            line = longer;
            continue;
        }
        lines.extend(Some(std::mem::take(&mut line)).filter(|line| !line.is_empty()));
        for letter in word.chars() {
            line.push(letter);
            if !fits(&line) && line.chars().nth(1).is_some() {
                line.pop();
                lines.push(std::mem::replace(&mut line, letter.to_string()));
            }
        }
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::language::Language;

    #[test]
    fn lines_break_at_spaces_and_within_long_words() {
        let chars = |most| move |line: &str| line.chars().count() <= most;
        assert_eq!(broken("", chars(4)), [""]);
        assert_eq!(broken("ab cd  ef", chars(5)), ["ab cd", "ef"]);
        assert_eq!(broken("a 123456789", chars(4)), ["a", "1234", "5678", "9"]);
        assert_eq!(broken("123456 78", chars(5)), ["12345", "6 78"]);
        assert_eq!(broken("a 1\u{a0}234 b", chars(5)), ["a", "1\u{a0}234", "b"]);
        assert_eq!(broken("łóść", chars(0)), ["ł", "ó", "ś", "ć"]);
    }

    #[test]
    fn no_term_reaches_the_values() {
        let font = Font::read().unwrap();
        let width_max = TERM_COLUMN.width();
        let shop = "Mannheimer Wertpapier- und Kryptohandelsgesellschaft".repeat(4);
        for language in Language::ALL {
            let term = language.texts().with("checkout-fee-shop", &[("shop", &shop)]);
            let lines = broken(&term, |line| font.fits(line, TEXT_SIZE, width_max));
            assert!(lines.len() > 3, "{}: {lines:?}", language.code());
            assert!(!font.fits(&term, TEXT_SIZE, width_max), "{}", language.code());
            let fit = lines.iter().all(|line| font.fits(line, TEXT_SIZE, width_max));
            assert!(fit, "{}: {lines:?}", language.code());
        }
    }

    #[test]
    fn a_document_has_its_file_and_what_fits_on_a_page() {
        let notes = |times| vec!["so it goes on ".repeat(times)];
        let write = |notes: &[String]| {
            let document = Document {
                language: "en",
                title: "Receipt",
                subtitle: "Acme",
                terms: &[],
                notes,
                file: ("receipt.jws", b"eyJ.x.y"),
            };
            document.write().unwrap()
        };
        let bytes = write(&notes(1));
        let has = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
        assert!(bytes.starts_with(b"%PDF-") && bytes.ends_with(b"%%EOF"));
        assert!(has(b"/Title (Receipt)") && has(b"(receipt.jws)") && has(b"eyJ.x.y"));
        assert_eq!(write(&notes(5_000)), write(&notes(6_000)));
    }
}
