//! The part of DejaVu Sans that one document shows: a composite font (ISO 32000-1, 9.7) whose codes
//! are numbers of the glyphs that are in it. `LICENSE-DejaVu` is shipped wherever the font is.

use std::collections::BTreeMap;

use pdf_writer::types::{CidFontType, FontFlags, SystemInfo, UnicodeCmap};
use pdf_writer::{Finish as _, Name, Pdf, Rect, Ref, Str};
use subsetter::GlyphRemapper;
use ttf_parser::{Face, GlyphId};

use crate::platform::error::{Error, Result};

/// The name, with the tag that a font has of which only a part is there (9.6.4).
const NAME: Name<'static> = Name(b"RECEIP+DejaVuSans");
const CHARACTERS: SystemInfo<'static> =
    SystemInfo { registry: Str(b"Adobe"), ordering: Str(b"Identity"), supplement: 0 };
/// Shown for a character that the font lacks.
const LACKING: char = '?';
/// Units of an em in a document.
const EM: i32 = 1_000;

/// The font, with the characters that were used of it.
pub(super) struct Font {
    face: Face<'static>,
    glyphs: GlyphRemapper,
    /// The characters by their codes.
    characters: BTreeMap<u16, char>,
}

impl Font {
    /// The font, of which nothing is used yet.
    ///
    /// # Errors
    /// When it cannot be read, which is our fault.
    pub(super) fn read() -> Result<Self> {
        let face = Face::parse(dejavu::sans::regular(), 0)
            .map_err(|error| Error::internal("read a font", error))?;
        Ok(Self { face, glyphs: GlyphRemapper::new(), characters: BTreeMap::new() })
    }

    /// The glyph of a character, and the character that is shown.
    fn glyph(&self, character: char) -> (GlyphId, char) {
        let shown = if character.is_whitespace() { ' ' } else { character };
        let found = self.face.glyph_index(shown).map(|glyph| (glyph, shown));
        let instead = || self.face.glyph_index(LACKING).unwrap_or_default();
        found.unwrap_or_else(|| (instead(), LACKING))
    }

    /// A text in the font's codes, which the document then has.
    pub(super) fn encode(&mut self, text: &str) -> Vec<u8> {
        let mut codes = Vec::with_capacity(2 * text.len());
        for character in text.chars() {
            let (glyph, shown) = self.glyph(character);
            let code = self.glyphs.remap(glyph.0);
            self.characters.insert(code, shown);
            codes.extend(code.to_be_bytes());
        }
        codes
    }

    /// True if a text of this size is at most so wide; both in points.
    pub(super) fn fits(&self, text: &str, size: i16, width_max: i16) -> bool {
        let advances = text.chars().map(|character| self.advance(self.glyph(character).0));
        let width: i64 = advances.map(i64::from).sum();
        width * i64::from(size) <= i64::from(width_max) * i64::from(self.face.units_per_em())
    }

    /// In units of the font.
    fn advance(&self, glyph: GlyphId) -> u16 {
        self.face.glyph_hor_advance(glyph).unwrap_or(0)
    }

    /// Units of the font in those of a document.
    fn scaled(&self, units: impl Into<i32>) -> i16 {
        let scaled = units.into() * EM / i32::from(self.face.units_per_em());
        i16::try_from(scaled).unwrap_or(i16::MAX)
    }

    /// Writes what was used of it, in `id` and the four numbers behind.
    ///
    /// # Errors
    /// When a part of it cannot be taken out, which is our fault.
    pub(super) fn write(&self, pdf: &mut Pdf, id: Ref) -> Result<()> {
        let number = |behind| Ref::new(id.get() + behind);
        let [descendant, descriptor, file, characters] = [1, 2, 3, 4].map(number);
        let part = subsetter::subset(dejavu::sans::regular(), 0, &self.glyphs)
            .map_err(|error| Error::internal("take a part of a font", error))?;
        let mut font = pdf.type0_font(id);
        font.base_font(NAME).encoding_predefined(Name(b"Identity-H"));
        font.descendant_font(descendant).to_unicode(characters);
        font.finish();
        let mut font = pdf.cid_font(descendant);
        font.subtype(CidFontType::Type2).base_font(NAME).system_info(CHARACTERS);
        font.font_descriptor(descriptor).cid_to_gid_map_predefined(Name(b"Identity"));
        let advances = self.glyphs.remapped_gids().map(GlyphId);
        let advances = advances.map(|glyph| self.scaled(self.advance(glyph)).into());
        font.widths().consecutive(0, advances);
        font.finish();
        let bounds = self.face.global_bounding_box();
        let [x1, y1, x2, y2] = [bounds.x_min, bounds.y_min, bounds.x_max, bounds.y_max]
            .map(|units| self.scaled(units).into());
        let capitals = self.face.capital_height().unwrap_or_else(|| self.face.ascender());
        pdf.font_descriptor(descriptor)
            .name(NAME)
            .flags(FontFlags::SYMBOLIC)
            .bbox(Rect::new(x1, y1, x2, y2))
            .italic_angle(0.0)
            .ascent(self.scaled(self.face.ascender()).into())
            .descent(self.scaled(self.face.descender()).into())
            .cap_height(self.scaled(capitals).into())
            .stem_v(80.0)
            .font_file2(file);
        pdf.stream(file, &part);
        let mut map = UnicodeCmap::new(Name(b"Custom"), CHARACTERS);
        for (code, character) in &self.characters {
            map.pair(*code, *character);
        }
        pdf.cmap(characters, &map.finish());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::language::Language;

    #[test]
    fn every_letter_of_our_languages_has_a_glyph() {
        let font = Font::read().unwrap();
        for language in Language::ALL {
            let text =
                language.texts().get("receipt-signed") + "€ 1\u{202f}000 ŻŁóœßñ Ελλάδα Москва";
            let lacking: String = text.chars().filter(|c| font.glyph(*c).1 == LACKING).collect();
            assert_eq!(lacking, "", "{}", language.code());
        }
        assert_eq!(font.glyph('\u{4e2d}').1, LACKING);
    }

    #[test]
    fn wider_letters_take_more_room() {
        let font = Font::read().unwrap();
        let fits = |text| font.fits(text, 10, 20);
        assert!(fits("iii") && fits("") && !fits("mmm"));
        assert!(!font.fits("iii", 30, 20) && font.fits("mmm", 10, 40));
    }
}
