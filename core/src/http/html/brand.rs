//! A partner's appearance on the pages for shoppers.

use std::fmt;
use std::str::FromStr;

/// Least contrast of text (WCAG 2.2, success criterion 1.4.3).
const CONTRAST_MIN: f64 = 4.5;
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
#[expect(clippy::float_arithmetic, reason = "colours are no money")]
fn contrast(one: [u8; 3], other: [u8; 3]) -> f64 {
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

/// The relative luminance of a colour in sRGB, 0 to 1.
#[expect(clippy::float_arithmetic, reason = "colours are no money")]
fn luminance(colour: [u8; 3]) -> f64 {
    let [red, green, blue] = colour.map(|channel| {
        let value = f64::from(channel) / 255.0;
        if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    });
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contrast_is_that_of_the_guidelines() {
        let white = [0xff; 3];
        for (colour, expected) in
            [([0; 3], 21.0), (white, 1.0), ([0x76, 0x76, 0x76], 4.54), ([0x0b, 0x57, 0xd0], 6.39)]
        {
            assert!((contrast(colour, white) - expected).abs() < 0.02, "{colour:?}");
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
