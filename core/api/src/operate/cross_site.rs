//! Links to our pages on pages of other sites. Browsers send no cookie of ours along with such a
//! request: a page of our own leads on to the same address, with it.

use http::{Method, StatusCode};
use maud::html;

use crate::http::html::shell::Shell;
use crate::http::reply::Reply;
use crate::http::request::Head;

/// A page that leads on to the same address; `None` unless another site opens it whole, by GET.
pub(super) fn lead_on(room: &str, head: &Head) -> Option<Reply> {
    let is = |name: &str, values: &[&str]| {
        head.header(name).is_some_and(|value| values.contains(&value))
    };
    let is_link = head.method == Method::GET
        && is("sec-fetch-site", &["cross-site", "same-site"])
        && is("sec-fetch-mode", &["navigate"])
        && is("sec-fetch-dest", &["document"])
        && head.header("accept").is_some_and(|types| types.contains("text/html"));
    if !is_link {
        return None;
    }
    let url = match &head.query {
        Some(query) => format!("{}?{query}", head.path),
        None => head.path.clone(),
    };
    let body = html! {
        p { "You have followed a link from another site." }
        p { a.button href=(url) { "Go on" } }
    };
    let shell = Shell { name: room, navigation: &[], current: "", account: html! {} };
    let mut reply = shell.render(StatusCode::OK, "Opening the page", &body);
    reply.set("refresh", format!("0; url={url}"));
    // The other page keeps no handle of the window.
    reply.set("cross-origin-opener-policy", "same-origin");
    Some(reply)
}
