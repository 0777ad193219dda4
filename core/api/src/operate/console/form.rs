//! Fields of forms, and the bodies of calls that are made of what was typed.

use maud::{Markup, html};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;
use serde_json::{Map, Number, Value};

pub(super) use super::typed::Typed;
use super::view;
use crate::http::fields;
use crate::http::html::choice::choice;
use crate::http::html::components::{self, field};
use crate::platform::crypto::sha256;

/// Parameter that names the columns of a file.
pub(super) const COLUMNS: &str = "columns";
/// Prefix of the hidden member that keeps what a field showed at first.
pub(super) const SHOWN: &str = "shown.";
/// The choice that says nothing.
const NO_CHOICE: (&str, &str) = ("", "–");

/// A field of a form, for one member of a call's body.
#[derive(Clone, Copy, Debug)]
pub(super) struct Input {
    /// The member; full stops lead into objects, and `.0.` into the only one of a list.
    pub(super) member: &'static str,
    pub(super) label: &'static str,
    pub(super) kind: Kind,
    pub(super) hint: &'static str,
    pub(super) required: bool,
    /// JSON pointer of the value in the subject that the form changes: what stays as it was shown is
    /// not sent.
    pub(super) current: Option<&'static str>,
}

/// The values that a field takes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Line,
    Text,
    /// A decimal number.
    Decimal,
    /// A decimal number, of which the member has the hundredths.
    Cents,
    /// A whole number.
    Integer,
    /// Values with their labels.
    Choice(&'static [(&'static str, &'static str)]),
    YesNo,
    /// Words with commas or white space between them.
    Words,
    /// Names with their values, `name=value` in a line each.
    Pairs,
    /// Anything, as JSON.
    Json,
    /// The content of a file, in base64.
    File,
    /// A line that stands in the path of the call, not in its body.
    Segment,
    /// A text that the link to the form has, and nobody types.
    Hidden,
}

impl Input {
    /// A line that may be left out.
    pub(super) const fn new(member: &'static str, label: &'static str) -> Self {
        Self { member, label, kind: Kind::Line, hint: "", required: false, current: None }
    }

    /// The operator's reason, which must be there.
    pub(super) const REASON: Self = Self {
        kind: Kind::Text,
        hint: "It stands in the audit, for good. 1 to 255 characters, no personal data.",
        required: true,
        ..Self::new("reason", "Reason")
    };

    /// The same, required.
    pub(super) const fn required(self) -> Self {
        Self { required: true, ..self }
    }

    /// The same with a hint.
    pub(super) const fn hint(self, hint: &'static str) -> Self {
        Self { hint, ..self }
    }

    /// The same of another kind.
    pub(super) const fn kind(self, kind: Kind) -> Self {
        Self { kind, ..self }
    }

    /// The same for a value that the subject has.
    pub(super) const fn of(self, current: &'static str) -> Self {
        Self { current: Some(current), ..self }
    }

    /// The markup, with what was typed.
    pub(super) fn show(&self, typed: &Typed, error: Option<&str>) -> Markup {
        let kind = match self.kind {
            Kind::Choice(_) | Kind::YesNo => "select",
            Kind::Text | Kind::Pairs | Kind::Json => "textarea",
            Kind::Line
            | Kind::Decimal
            | Kind::Cents
            | Kind::Integer
            | Kind::Words
            | Kind::Segment => "text",
            Kind::File => "file",
            Kind::Hidden => {
                let value = typed.get(self.member);
                return html! { input type="hidden" name=(self.member) value=(value); };
            }
        };
        // A browser fills in no file.
        let value = if kind == "file" { "" } else { typed.get(self.member) };
        let shown = components::Field {
            kind,
            value,
            hint: Some(self.hint).filter(|hint| !hint.is_empty()),
            error,
            required: self.required,
            is_verbatim: matches!(self.kind, Kind::Json | Kind::Pairs | Kind::Segment),
            ..components::Field::text(self.member, self.label)
        };
        let options: &[(&str, &str)] = match self.kind {
            Kind::Choice(options) => options,
            Kind::YesNo => &[("yes", "Yes"), ("no", "No")],
            _ => return field(&shown),
        };
        // What nobody has chosen is no default: a choice may let coins leave.
        let none = Some(NO_CHOICE).filter(|_| !self.required || value.is_empty());
        let options: Vec<_> = none.into_iter().chain(options.iter().copied()).collect();
        choice(&shown, &options)
    }

    /// The subject's present value, as the field shows it.
    pub(super) fn shown(&self, subject: &Value) -> Option<String> {
        let pointer = self.current?;
        Some(match (self.kind, subject.pointer(pointer)) {
            (Kind::Json, Some(value)) => format!("{value:#}"),
            _ => view::text(subject, pointer).replace("\r\n", "\n"),
        })
    }

    /// The value with `null` for each pair that the subject has and nobody has typed any more.
    fn without_others(&self, mut value: Value, subject: &Value) -> Value {
        let stored = self.current.and_then(|pointer| subject.pointer(pointer)?.as_object());
        if let (Kind::Pairs, Some(pairs), Some(stored)) = (self.kind, value.as_object_mut(), stored)
        {
            for name in stored.keys() {
                pairs.entry(name).or_insert(Value::Null);
            }
        }
        value
    }

    /// The value as a hidden member keeps it: of a document, which must not be sent twice, a digest.
    pub(super) fn kept(&self, value: &str) -> String {
        match self.kind {
            Kind::Json => hex::encode(sha256(value)),
            _ => value.to_owned(),
        }
    }

    /// The value of the member.
    fn value(&self, text: &str) -> Result<Value, &'static str> {
        Ok(match self.kind {
            Kind::Line
            | Kind::Text
            | Kind::Choice(_)
            | Kind::File
            | Kind::Segment
            | Kind::Hidden => text.into(),
            Kind::YesNo => (text == "yes").into(),
            Kind::Decimal => Value::Number(decimal(text).ok_or("a number such as 12.50")?),
            Kind::Cents => cents(text).ok_or("a number of whole cents such as 12.50")?.into(),
            Kind::Integer => {
                let number: i64 = text.parse().map_err(|_| "a whole number")?;
                number.into()
            }
            Kind::Words => {
                let words = text.split(|c: char| c == ',' || c.is_whitespace());
                let words = words.filter(|word| !word.is_empty()).map(Value::from);
                Value::Array(words.collect())
            }
            Kind::Pairs => {
                let lines = text.lines().filter(|line| !line.trim().is_empty());
                let pairs = lines.map(|line| {
                    let (name, value) = line.split_once('=').ok_or("name=value in each line")?;
                    Ok((name.trim().to_owned(), value.trim().into()))
                });
                Value::Object(pairs.collect::<Result<_, &'static str>>()?)
            }
            Kind::Json => fields::parse(text.as_bytes()).map_err(|_| "JSON")?,
        })
    }
}

/// A decimal number as JSON has it, digit by digit.
fn decimal(text: &str) -> Option<Number> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    plain.then(|| text.parse().ok()).flatten()
}

/// The hundredths of a decimal number, which are whole.
fn cents(text: &str) -> Option<i64> {
    decimal(text)?;
    let amount = Decimal::from_str_exact(text).ok()?;
    let cents = amount.checked_mul(Decimal::ONE_HUNDRED)?;
    cents.fract().is_zero().then(|| cents.to_i64()).flatten()
}

pub(super) type FieldError = (&'static str, String);

/// The body of a call: the fixed members, and what was typed. A field of a change that is as it was
/// shown is left out; one that somebody else has changed since is an error.
///
/// # Errors
/// Every field that is not as it must be.
pub(super) fn body(
    inputs: &[Input],
    fixed: &[(&str, &str)],
    typed: &Typed,
    subject: &Value,
) -> Result<Value, Vec<FieldError>> {
    let (mut body, mut errors) = (Map::new(), Vec::new());
    for (member, value) in fixed {
        let value = match *value {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            text => text.into(),
        };
        put(&mut body, member, value);
    }
    for input in inputs {
        let text = typed.get(input.member).trim().replace("\r\n", "\n");
        let shown = typed.get(&format!("{SHOWN}{}", input.member)).replace("\r\n", "\n");
        if input.required && text.is_empty() {
            errors.push((input.member, format!("{} is missing", input.label)));
            continue;
        }
        if matches!(input.kind, Kind::Segment) {
            continue;
        }
        let Some(now) = input.shown(subject) else {
            if !text.is_empty() {
                match input.value(&text) {
                    Ok(value) => put(&mut body, input.member, value),
                    Err(wanted) => {
                        errors.push((input.member, format!("{}: {wanted}", input.label)))
                    }
                }
            }
            continue;
        };
        if input.kept(&text) == shown {
            continue;
        }
        if input.kept(&now) != shown {
            let now = match (input.kind, &*now) {
                (Kind::Json, _) => "something else",
                (_, "") => "nothing",
                (_, now) => now,
            };
            errors.push((input.member, format!("{} has become {now} meanwhile", input.label)));
            continue;
        }
        let is_list = matches!(input.kind, Kind::Words | Kind::Pairs);
        let value = if text.is_empty() && !is_list { Ok(Value::Null) } else { input.value(&text) };
        match value {
            Ok(value) => put(&mut body, input.member, input.without_others(value, subject)),
            Err(wanted) => errors.push((input.member, format!("{}: {wanted}", input.label))),
        }
    }
    if errors.is_empty() { Ok(Value::Object(body)) } else { Err(errors) }
}

/// Sets a member; full stops lead into objects, and `.0.` into the only one of a list.
fn put(body: &mut Map<String, Value>, member: &str, value: Value) {
    let Some((outer, inner)) = member.split_once('.') else {
        body.insert(member.to_owned(), value);
        return;
    };
    let object = || Value::Object(Map::new());
    let (held, inner) = match inner.strip_prefix("0.") {
        Some(inner) => {
            let list = body.entry(outer).or_insert_with(|| Value::Array(vec![object()]));
            (list.get_mut(0), inner)
        }
        None => (Some(body.entry(outer).or_insert_with(object)), inner),
    };
    if let Some(Value::Object(held)) = held {
        put(held, inner, value);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const INPUTS: &[Input] = &[
        Input::new("amount", "Amount").kind(Kind::Decimal),
        Input::new("checks.identity", "Identity"),
        Input::new("name", "Name").of("/name"),
        Input::new("cap", "Cap").kind(Kind::Decimal).of("/cap"),
        Input::new("countries", "Countries").kind(Kind::Words).of("/countries"),
    ];

    fn made(text: &str, subject: &Value) -> Result<Value, Vec<FieldError>> {
        body(
            INPUTS,
            &[("event", "hold"), ("deleted", "true")],
            &Typed::read(text.as_bytes()),
            subject,
        )
    }

    #[test]
    fn a_body_has_what_was_typed_digit_by_digit() {
        let body = made("amount=12.50&checks.identity=verified", &json!({})).unwrap();
        let text =
            r#"{"event":"hold","deleted":true,"amount":12.50,"checks":{"identity":"verified"}}"#;
        let wanted: Value = serde_json::from_str(text).unwrap();
        assert_eq!((&body, body["amount"].to_string()), (&wanted, "12.50".to_owned()));
        for wrong in ["1e9", "x", "1,5", "NaN", "--1", "."] {
            let errors = made(&format!("amount={wrong}"), &json!({})).unwrap_err();
            assert_eq!(errors[0].0, "amount", "{wrong}");
        }
    }

    #[test]
    fn a_number_of_cents_is_typed_as_an_amount() {
        for (typed, sent) in [("50", 5000), ("12.50", 1250), ("0.07", 7), ("-1", -100)] {
            assert_eq!(cents(typed), Some(sent), "{typed}");
        }
        let long = "9".repeat(40);
        for wrong in ["12.345", "1,5", "x", "1e2", "99999999999999999999", &long] {
            assert_eq!(cents(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn json_is_read_as_a_body_is() {
        let input = Input::new("config", "Configuration").kind(Kind::Json);
        assert_eq!(
            input.value(r#"{"a":[1.50]}"#).map(|value| value.to_string()),
            Ok(r#"{"a":[1.50]}"#.to_owned())
        );
        for wrong in ["{", r#"{"a":1,"a":2}"#, r#"{"$serde_json::private::RawValue":"1"}"#] {
            assert_eq!(input.value(wrong), Err("JSON"), "{wrong}");
        }
    }

    #[test]
    fn a_member_may_be_in_a_list() {
        let inputs =
            &[Input::new("documents.0.type", "Type"), Input::new("documents.0.side", "Side")];
        let typed = Typed::read(b"documents.0.type=passport&documents.0.side=front");
        let body = body(inputs, &[], &typed, &Value::Null).unwrap();
        assert_eq!(body, json!({"documents": [{"type": "passport", "side": "front"}]}));
    }

    #[test]
    fn a_pair_that_is_not_typed_any_more_is_taken_away() {
        const RATES: &[Input] = &[Input::new("rates", "Rates").kind(Kind::Pairs).of("/rates")];
        let partner = json!({"rates": {"client": "5/s", "quotes": "1/s"}});
        for (text, wanted) in [
            ("quotes=2/s", json!({"client": null, "quotes": "2/s"})),
            ("", json!({"client": null, "quotes": null})),
        ] {
            let mut typed = Typed::default();
            typed.fill(RATES, &partner);
            typed.set("rates", text.to_owned());
            assert_eq!(body(RATES, &[], &typed, &partner), Ok(json!({"rates": wanted})));
        }
    }

    #[test]
    fn a_change_sends_what_differs_and_overwrites_nobody() {
        let partner = json!({"name": "Acme", "cap": 3, "countries": ["NL"]});
        let mut typed = Typed::default();
        typed.fill(INPUTS, &partner);
        typed.set("name", "Acme Wallets".to_owned());
        typed.set("cap", String::new());
        typed.set("countries", "NL, DE\nBE".to_owned());
        let body = body(INPUTS, &[], &typed, &partner).unwrap();
        let wanted = json!({"name": "Acme Wallets", "cap": null, "countries": ["NL", "DE", "BE"]});
        assert_eq!(body, wanted);
        let renamed = json!({"name": "Acme Pay", "cap": 3, "countries": ["NL"]});
        let errors = super::body(INPUTS, &[], &typed, &renamed).unwrap_err();
        assert_eq!(errors, [("name", "Name has become Acme Pay meanwhile".to_owned())]);
    }
}
