//! Choices of one of some values, with their hints and errors.

use maud::{Markup, html};

use super::components::{Field, described_by};

/// A choice of one of these pairs of value and label. The field's value is the chosen one.
pub(crate) fn choice(field: &Field<'_>, options: &[(&str, &str)]) -> Markup {
    let id = format!("field-{}{}", field.prefix, field.name);
    let about = format!("{id}-about");
    let described = (field.hint.is_some() || field.error.is_some()).then_some(&about);
    html! {
        label for=(id) {
            span { (field.label) }
            (described_by(&about, field))
            select name=(field.name) id=(id) required[field.required]
                aria-describedby=[described] aria-invalid=[field.error.map(|_| "true")] {
                @for (value, text) in options {
                    option value=(value) selected[*value == field.value] { (text) }
                }
            }
        }
    }
}
