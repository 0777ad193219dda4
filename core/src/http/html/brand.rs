//! A partner's appearance on the pages for shoppers.

use std::fmt;
use std::str::FromStr;

use rust_decimal::{Decimal, MathematicalOps as _};

/// Least contrast of text (WCAG 2.2, success criterion 1.4.3).
const CONTRAST_MIN: Decimal = Decimal::from_parts(45, 0, 0, false, 1);
/// The ground of pages in the light scheme (`--ground`), which is darker than the text on a button.
const GROUND: [u8; 3] = [0xf4, 0xf5, 0xf7];

/// Logo, colour and links of a partner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Brand {
    /// Colour of links and main buttons in the light scheme.
    pub accent: Option<Accent>,
    /// Path of the logo.
    pub logo: Option<String>,
    /// Page or address where shoppers get help.
    pub support_url: Option<String>,
    /// The partner's privacy statement.
    pub privacy_url: Option<String>,
    /// The partner's terms.
    pub terms_url: Option<String>,
}

/// A colour that can be read on the ground of pages, and white text on it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Accent([u8; 3]);

/// The text is no such colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidAccent {
    /// It is not `#` and six hexadecimal digits.
    Malformed,
    /// Its contrast to the ground is below 4.5:1.
    LowContrast,
}

impl FromStr for Accent {
    type Err = InvalidAccent;

    fn from_str(text: &str) -> Result<Self, InvalidAccent> {
        let digits = text.strip_prefix('#').ok_or(InvalidAccent::Malformed)?;
        let mut colour = [0; 3];
        hex::decode_to_slice(digits, &mut colour).map_err(|_| InvalidAccent::Malformed)?;
        if contrast(colour, GROUND) < CONTRAST_MIN {
            return Err(InvalidAccent::LowContrast);
        }
        Ok(Self(colour))
    }
}

impl Accent {
    /// The style sheet that sets the colour in the light scheme. The dark one keeps its own accent,
    /// because a colour that can be read on light ground cannot be on dark.
    pub(crate) fn style(self) -> String {
        format!("@media (prefers-color-scheme:light){{:root{{--accent:{self}}}}}")
    }
}

impl fmt::Display for Accent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", hex::encode(self.0))
    }
}

impl fmt::Debug for Accent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Accent({self})")
    }
}

/// The contrast ratio of two colours, 1 to 21.
fn contrast(one: [u8; 3], other: [u8; 3]) -> Decimal {
    let (one, other, glare) = (luminance(one), luminance(other), Decimal::new(5, 2));
    (one.max(other) + glare) / (one.min(other) + glare)
}

/// The relative luminance of a colour in sRGB, 0 to 1 (as WCAG 2.2 defines it).
fn luminance(colour: [u8; 3]) -> Decimal {
    let [red, green, blue] = colour.map(|channel| {
        let value = Decimal::from(channel) / Decimal::from(u8::MAX);
        if value <= Decimal::new(4045, 5) {
            value / Decimal::new(1292, 2)
        } else {
            ((value + Decimal::new(55, 3)) / Decimal::new(1055, 3)).powd(Decimal::new(24, 1))
        }
    });
    Decimal::new(2126, 4) * red + Decimal::new(7152, 4) * green + Decimal::new(722, 4) * blue
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contrast_is_that_of_the_guidelines() {
        let white = [0xff; 3];
        for (colour, expected) in
            [([0; 3], 2100), (white, 100), ([0x76, 0x76, 0x76], 454), ([0x0b, 0x57, 0xd0], 639)]
        {
            let off = contrast(colour, white) - Decimal::new(expected, 2);
            assert!(off.abs() < Decimal::new(2, 2), "{colour:?}");
        }
    }

    #[test]
    fn an_accent_can_be_read_on_the_ground() {
        assert_eq!("#0B57d0".parse::<Accent>().unwrap().to_string(), "#0b57d0");
        for grey in ["#777777", "#767676"] {
            assert_eq!(grey.parse::<Accent>(), Err(InvalidAccent::LowContrast), "{grey}");
        }
        for text in ["", "0b57d0", "#0b57d", "#0b57d0a", "#gggggg", "red", "#é12345"] {
            assert_eq!(text.parse::<Accent>(), Err(InvalidAccent::Malformed), "{text}");
        }
    }
}
