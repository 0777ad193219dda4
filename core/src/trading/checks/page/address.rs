//! The user's residential address.

use maud::{Markup, html};
use serde_json::json;

use super::Visit;
use crate::Core;
use crate::http::fields::Fields;
use crate::http::form::Form;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::users::residence;
use rampart_types::UserId;

/// Members of the form, in the API's names, and what browsers fill in.
const MEMBERS: [(&str, &str, &str); 4] = [
    ("address", "Street", "address-line1"),
    ("addressNo", "House number", "off"),
    ("postalCode", "Postal code", "postal-code"),
    ("city", "City", "address-level2"),
];

/// The form.
pub(super) fn form() -> Markup {
    html! {
        p { "Please tell us where you live." }
        form method="post" {
            @for (name, label, autocomplete) in MEMBERS {
                label {
                    (label)
                    input name=(name) autocomplete=(autocomplete) required maxlength="100";
                }
            }
            button.main type="submit" { "Send the address" }
        }
    }
}

/// Takes the address.
pub(super) async fn submit(
    conn: &mut Connection,
    core: &Core,
    visit: &Visit,
    user: UserId,
    form: &Form,
) -> Result<Option<&'static str>> {
    let members = MEMBERS.map(|(name, ..)| (name.to_owned(), json!(form.get(name).trim())));
    let document = serde_json::Value::Object(members.into_iter().collect());
    residence::declare(conn, core, (&visit.client, user), Fields::of(&document)?).await?;
    Ok(None)
}
