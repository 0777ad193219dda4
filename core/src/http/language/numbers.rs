//! Numbers and dates as a language writes them, and numbers as they are typed.

use chrono::{NaiveDate, NaiveTime};
use rust_decimal::Decimal;

use super::{Language, Texts};

impl Language {
    /// The marks in numbers: between groups of three digits, which no line breaks at, and before the
    /// decimals.
    const fn marks(self) -> (char, char) {
        match self {
            Self::English => (',', '.'),
            Self::French => ('\u{202f}', ','),
            Self::Polish => ('\u{a0}', ','),
            Self::Dutch | Self::German | Self::Spanish | Self::Portuguese | Self::Italian => {
                ('.', ',')
            }
        }
    }
}

impl Texts {
    /// An amount for people, of one as the catalogue formats it (`1234.56 EUR`): with the language's
    /// decimal mark, and its mark between groups of three digits.
    pub fn amount(self, formatted: &str) -> String {
        let (number, unit) = formatted.split_at(formatted.find(' ').unwrap_or(formatted.len()));
        let (sign, digits) = number.split_at(usize::from(number.starts_with('-')));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        if whole.is_empty() || !whole.bytes().all(|byte| byte.is_ascii_digit()) {
            return formatted.to_owned();
        }
        let (group, decimal) = self.language.marks();
        let mut text = sign.to_owned();
        for (index, digit) in whole.chars().enumerate() {
            if index > 0 && (whole.len() - index).is_multiple_of(3) {
                text.push(group);
            }
            text.push(digit);
        }
        if !fraction.is_empty() {
            text.push(decimal);
            text.push_str(fraction);
        }
        text + unit
    }

    /// A date in the language's order, as [`Texts::time`] has it.
    pub(crate) fn date(self, day: NaiveDate) -> String {
        let midnight = self.time(day.and_time(NaiveTime::MIN).and_utc());
        midnight.split(' ').next().unwrap_or_default().to_owned()
    }

    /// A number with the language's decimal mark and no other, as inputs take it back.
    pub(crate) fn number(self, value: Decimal) -> String {
        value.normalize().to_string().replace('.', self.decimal().encode_utf8(&mut [0; 4]))
    }

    /// A number as it is typed, with a point before the decimals and no mark between groups. A mark
    /// that stands where groups of three digits end is one between groups; another is the decimal mark.
    pub(crate) fn plain_number(self, typed: &str) -> String {
        let (group, decimal) = self.language.marks();
        let typed: String = typed.chars().filter(|char| !char.is_whitespace()).collect();
        let whole = typed.split_once(decimal).map_or(typed.as_str(), |(whole, _)| whole);
        let is_grouped = whole.contains(group)
            && !whole.starts_with('0')
            && whole.split(group).enumerate().all(|(index, digits)| {
                let is_full = match index {
                    0 => (1..=3).contains(&digits.len()),
                    _ => digits.len() == 3,
                };
                is_full && digits.bytes().all(|byte| byte.is_ascii_digit())
            });
        match is_grouped {
            true => typed.replace(group, "").replace(',', "."),
            false => typed.replace(',', "."),
        }
    }

    const fn decimal(self) -> char {
        self.language.marks().1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typed_number_is_read_with_the_languages_marks() {
        for (language, typed, plain) in [
            (Language::English, "1,000", "1000"),
            (Language::English, "12,345,678.90", "12345678.90"),
            (Language::English, "1,5", "1.5"),
            (Language::English, "0.125", "0.125"),
            (Language::German, "1.000", "1000"),
            (Language::German, "1.234,50", "1234.50"),
            (Language::German, "1.5", "1.5"),
            (Language::Polish, "1 234,5", "1234.5"),
            (Language::French, " 1\u{202f}234 ", "1234"),
            (Language::Dutch, "1.2345", "1.2345"),
            (Language::Dutch, "0.125", "0.125"),
            (Language::Dutch, "1,2,3", "1.2.3"),
            (Language::Dutch, "", ""),
        ] {
            assert_eq!(language.texts().plain_number(typed), plain, "{typed}");
        }
    }

    #[test]
    fn dates_have_the_languages_order() {
        let day = NaiveDate::from_ymd_opt(1990, 12, 31).unwrap();
        for (language, date) in [
            (Language::English, "1990-12-31"),
            (Language::Dutch, "31-12-1990"),
            (Language::Polish, "31.12.1990"),
            (Language::French, "31/12/1990"),
        ] {
            assert_eq!(language.texts().date(day), date);
        }
    }

    #[test]
    fn amounts_have_the_languages_marks() {
        for (language, amount) in [
            (Language::English, "1,234,567.50 EUR"),
            (Language::Dutch, "1.234.567,50 EUR"),
            (Language::German, "1.234.567,50 EUR"),
            (Language::French, "1\u{202f}234\u{202f}567,50 EUR"),
            (Language::Spanish, "1.234.567,50 EUR"),
            (Language::Portuguese, "1.234.567,50 EUR"),
            (Language::Italian, "1.234.567,50 EUR"),
            (Language::Polish, "1\u{a0}234\u{a0}567,50 EUR"),
        ] {
            assert_eq!(language.texts().amount("1234567.50 EUR"), amount, "{language:?}");
        }
        for (plain, amount) in [
            ("0.00142012 BTC", "0.00142012 BTC"),
            ("-999.00 EUR", "-999.00 EUR"),
            ("-1000 JPY", "-1,000 JPY"),
            ("12345", "12,345"),
            ("BTC", "BTC"),
            ("", ""),
        ] {
            assert_eq!(Language::English.texts().amount(plain), amount);
        }
        let typed = Decimal::new(123_450, 2);
        assert_eq!(Language::German.texts().number(typed), "1234,5");
    }
}
