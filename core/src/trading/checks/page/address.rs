//! The user's residential address.

use maud::{Markup, html};
use serde_json::json;

use super::Visit;
use crate::Core;
use crate::http::fields::Fields;
use crate::http::form::Form;
use crate::http::language::Texts;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::users::residence;
use rampart_types::UserId;

/// Members of the form in the API's names, their labels' messages, and what browsers fill in.
const MEMBERS: [(&str, &str, &str); 4] = [
    ("address", "check-address-street", "address-line1"),
    ("addressNo", "check-address-number", "off"),
    ("postalCode", "check-address-postal-code", "postal-code"),
    ("city", "check-address-city", "address-level2"),
];

/// The form.
pub(super) fn form(texts: Texts) -> Markup {
    html! {
        p { (texts.get("check-address-intro")) }
        form method="post" {
            @for (name, label, autocomplete) in MEMBERS {
                label {
                    (texts.get(label))
                    input name=(name) autocomplete=(autocomplete) required maxlength="100";
                }
            }
            button.main type="submit" { (texts.get("check-send")) }
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
    residence::declare(conn, core, (&visit.client, user), Fields::from_object(&document)?).await?;
    Ok(None)
}
