//! Choices of one of some values, with their hints and errors.

use maud::{Markup, html};

use super::components::{Field, Ids, labelled};

/// A choice of one of these pairs of value and label. The field's value is the chosen one.
pub fn choice(field: &Field<'_>, options: &[(&str, &str)]) -> Markup {
    labelled(field, |Ids { id, named, described }| {
        html! {
            select name=(field.name) id=(id) required[field.required]
                aria-labelledby=(named) aria-describedby=[described]
                aria-invalid=[field.error.map(|_| "true")] {
                @for (value, text) in options {
                    option value=(value) selected[*value == field.value] { (text) }
                }
            }
        }
    })
}

/// The same without hint and error, where nothing need be chosen.
pub fn select(name: &str, label: &str, chosen: &str, options: &[(&str, &str)]) -> Markup {
    choice(&Field { value: chosen, required: false, ..Field::text(name, label) }, options)
}
