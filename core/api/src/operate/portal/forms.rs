//! Forms of the portal: each has the token of its session, and an id by which one that is sent twice,
//! as by a double click, counts once within ten minutes.

use maud::{Markup, html};
use serde_json::json;

use super::page::{FORM_ID, FORM_TOKEN, Visit};
use crate::endpoint::FormUse;
use crate::http::form::Form;
use crate::platform::crypto::sha256;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::policies::manifest::digest_hex;

impl Visit<'_> {
    /// A form that sends an action of this session's.
    pub(super) fn form_to(&self, action: &str, body: &Markup) -> Markup {
        self.encoded_form_to(action, None, body)
    }

    /// The same for a form with a file.
    pub(super) fn form_with_file_to(&self, action: &str, body: &Markup) -> Markup {
        self.encoded_form_to(action, Some("multipart/form-data"), body)
    }

    fn encoded_form_to(&self, action: &str, encoding: Option<&str>, body: &Markup) -> Markup {
        html! {
            form method="post" action=(action) enctype=[encoding] {
                input type="hidden" name=(FORM_TOKEN) value=(self.session.form_token());
                input type="hidden" name=(FORM_ID) value=(self.form_id);
                (body)
            }
        }
    }

    /// A form that is a button alone.
    pub(super) fn button_to(&self, action: &str, label: &str) -> Markup {
        self.form_to(action, &html! { button.small type="submit" { (label) } })
    }

    /// Uses the form up, in the transaction of its effect and before it. If it was sent within the
    /// last ten minutes, what [`Visit::keep_result`] has kept of the first, empty without that; `None`
    /// otherwise.
    pub(super) async fn earlier_result(
        &self,
        tx: &mut Connection,
        route: &'static str,
    ) -> Result<Option<String>> {
        match self.form_use(route) {
            Some(form) => form.begin(self.core, tx).await,
            None => Ok(None),
        }
    }

    /// Keeps the result for a second submission of the form, in the transaction of its effect.
    pub(super) async fn keep_result(
        &self,
        tx: &mut Connection,
        route: &'static str,
        result: &str,
    ) -> Result<()> {
        match self.form_use(route) {
            Some(form) => form.keep(self.core, tx, result).await,
            None => Ok(()),
        }
    }

    /// Lets the form be sent again, because its effect failed after the form was used up.
    ///
    /// # Errors
    /// When the database cannot be written: the form then counts as sent until its time is over.
    pub(super) async fn release_form(
        &self,
        conn: &mut Connection,
        route: &'static str,
    ) -> Result<()> {
        match self.form_use(route) {
            Some(form) => form.release(conn).await,
            None => Ok(()),
        }
    }

    /// The form that was sent; `None` if it has no id, as those of an earlier version's pages.
    fn form_use(&self, route: &'static str) -> Option<FormUse> {
        let form = self.form();
        if form.get(FORM_ID).is_empty() {
            return None;
        }
        // The members have the session's token too, so no other session gets the result; and what
        // was typed, so a form that was changed and sent from the same page is another one.
        let files = form.files().into_iter().map(|(name, content)| (name, digest_hex(content)));
        let files: Vec<_> = files.collect();
        let sent = json!([self.params(), form.members(), files]).to_string();
        let (client, key) = (self.session.client.id(), hex::encode(sha256(&sent)));
        Some(FormUse { client, route, key })
    }
}

/// True if every box that was sent under a name with this prefix is one that `is_known` by the rest
/// of its name, and ticked. Where no box means everything, one that got lost would ask for more.
pub(super) fn has_known_boxes(form: &Form, prefix: &str, is_known: impl Fn(&str) -> bool) -> bool {
    let boxes = form.members().into_iter();
    let mut boxes = boxes.filter_map(|(name, value)| Some((name.strip_prefix(prefix)?, value)));
    boxes.all(|(name, value)| value == "yes" && is_known(name))
}
