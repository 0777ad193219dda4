//! The errors of a refused form: each at its field, and all of them on top.

use maud::{Markup, html};

use super::choice::choice;
use super::components::{Field, error_summary};
use crate::http::form::Form;
use crate::http::language::Texts;

/// A form as it was typed, and the errors in it.
#[derive(Clone, Copy)]
pub(crate) struct TypedForm<'a> {
    pub(crate) form: &'a Form,
    pub(crate) errors: &'a FormErrors,
}

/// Errors of a form in the reader's language.
#[derive(Debug, Default)]
pub struct FormErrors(Vec<FormError>);

/// An error of a form.
#[derive(Debug, PartialEq, Eq)]
struct FormError {
    /// Name of its field; empty for the form's.
    field: &'static str,
    /// Label of a field whose error other fields can have in the same words.
    label: Option<String>,
    text: String,
}

impl FormError {
    /// Its text on top of the page, away from its field.
    fn summary(&self) -> String {
        match &self.label {
            Some(label) => format!("{label} – {}", self.text),
            None => self.text.clone(),
        }
    }
}

impl FormErrors {
    /// One error.
    pub fn one(field: &'static str, text: String) -> Self {
        Self(vec![FormError { field, label: None, text }])
    }

    /// Adds an error, unless the field has this one already.
    pub(crate) fn add(&mut self, field: &'static str, text: String) {
        self.add_new(FormError { field, label: None, text });
    }

    /// The same in words that other fields of the form share: the label tells them apart.
    pub(crate) fn add_labelled(&mut self, field: &'static str, label: &str, text: String) {
        self.add_new(FormError { field, label: Some(label.to_owned()), text });
    }

    fn add_new(&mut self, error: FormError) {
        if !self.0.contains(&error) {
            self.0.push(error);
        }
    }

    /// True if nothing is wrong.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first error of a field.
    pub(crate) fn of(&self, field: &str) -> Option<&str> {
        self.0.iter().find(|error| error.field == field).map(|error| error.text.as_str())
    }

    /// A box that has to be ticked, with its error.
    pub fn consent(&self, name: &str, label: &Markup) -> Markup {
        let id = format!("field-{name}");
        let about = format!("{id}-about");
        let error = self.of(name);
        html! {
            label.tick for=(id) {
                input #(id) type="checkbox" name=(name) value="yes"
                    aria-describedby=[error.map(|_| &about)] aria-invalid=[error.map(|_| "true")];
                span {
                    (label)
                    @if let Some(error) = error { " " span.field-error id=(about) { (error) } }
                }
            }
        }
    }

    /// A choice that has to be made of pairs of value and label, with its error.
    pub(crate) fn choice(
        &self,
        name: &str,
        label: &str,
        chosen: &str,
        options: &[(&str, &str)],
    ) -> Markup {
        let options: Vec<_> = [("", "…")].into_iter().chain(options.iter().copied()).collect();
        choice(&Field { value: chosen, error: self.of(name), ..Field::text(name, label) }, &options)
    }

    /// All of them, for the top of the page; nothing if there are none.
    pub(crate) fn summary(&self, texts: Texts) -> Markup {
        self.summary_of(texts, "")
    }

    /// The same of a form whose fields have this prefix on their page.
    pub(crate) fn summary_of(&self, texts: Texts, prefix: &str) -> Markup {
        let line = |error: &FormError| (format!("{prefix}{}", error.field), error.summary());
        let lines: Vec<_> = self.0.iter().map(line).collect();
        let errors: Vec<_> = lines.iter().map(|(name, text)| (&**name, &**text)).collect();
        error_summary(&texts.get("error-summary"), &errors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::html::components::{Tone, toast};
    use crate::http::language::Language;

    #[test]
    fn a_page_opens_at_what_was_refused() {
        let errors = FormErrors::one("email", "This is no address.".to_owned());
        let summary = errors.summary(Language::English.texts());
        for refused in [summary, toast(Tone::Bad, "This was refused.")] {
            let shown = refused.into_string();
            assert!(shown.contains("role=\"alert\" tabindex=\"-1\" autofocus>"), "{shown}");
        }
        let done = toast(Tone::Good, "It is done.").into_string();
        assert!(!done.contains("tabindex") && !done.contains("autofocus"), "{done}");
    }

    #[test]
    fn the_summary_tells_fields_with_the_same_error_apart() {
        let mut errors = FormErrors::default();
        for (field, label) in [("city", "City"), ("city", "City"), ("street", "Street")] {
            errors.add_labelled(field, label, "This is missing.".to_owned());
        }
        let summary = errors.summary(Language::English.texts()).into_string();
        for line in ["#field-city\">City – This is", "#field-street\">Street – This is"] {
            assert_eq!(summary.matches(line).count(), 1, "{summary}");
        }
        assert_eq!(errors.of("city"), Some("This is missing."));
    }
}
