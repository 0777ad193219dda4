//! Figures of what an action touches, on its page.

use maud::{Markup, html};

use super::view::{Cell, facts};
use super::visit::{Visit, segment};

const CALL: &str = "/admin/v1/dependents";

/// Figures of an action.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figures {
    /// The query of the call, with `{}` for each of the page's ids, in their order.
    pub(super) query: &'static str,
    pub(super) rows: &'static [(&'static str, Cell)],
}

impl Figures {
    /// The figures; none of what is gone, as the action itself will say.
    pub(super) async fn show(&self, visit: &Visit<'_>, ids: &[String]) -> Markup {
        let read = visit.get(&format!("{CALL}?{}", filled(self.query, ids))).await;
        html! {
            @if let Ok(read) = &read { h2 { "It touches" } (facts(visit, read, self.rows)) }
        }
    }
}

fn filled(pattern: &str, ids: &[String]) -> String {
    let mut ids = ids.iter();
    let mut parts = pattern.split("{}");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |query, part| {
        let id = ids.next().map_or_else(String::new, |id| segment(id));
        format!("{query}{id}{part}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_fill_a_query_and_add_nothing_to_it() {
        let ids = ["acme".to_owned(), "1&user=2".to_owned()];
        assert_eq!(filled("partner={}&apiKey={}", &ids), "partner=acme&apiKey=1%26user%3D2");
        assert_eq!(filled("partner={}", &ids), "partner=acme");
        assert_eq!(filled("", &ids), "");
    }
}
