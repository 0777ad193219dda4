//! Pictures that users have sent, in the page beside what they are compared with. One is read, and its
//! read stands in the audit, when it is opened.

use maud::{Markup, html};
use serde_json::Value;

use super::view::text;
use super::visit::segment;

/// Sizes, as parts of the frame's width, with their names.
const ZOOMS: [(&str, &str); 3] = [("1", "Whole"), ("2", "200 %"), ("4", "400 %")];

/// A picture of a user.
#[derive(Debug)]
pub(super) struct Picture {
    title: String,
    url: String,
    is_image: bool,
}

impl Picture {
    /// Those of a user's documents and of the accounts' proofs.
    pub(super) fn all(user: &Value, accounts: &[Value], uuid: &str) -> Vec<Self> {
        let picture = |title: String, of: &Value, folder: &str| Self {
            title,
            url: format!("/admin/v1/users/{}/{folder}/{}", segment(uuid), text(of, "/id")),
            is_image: text(of, "/mediaType").starts_with("image/"),
        };
        let sides = user["documents"].as_array().into_iter().flatten();
        let sides = sides.filter(|side| side["id"].is_string()).map(|side| {
            let title = format!("{}, {}", text(side, "/type"), text(side, "/side"));
            picture(title, side, "documents")
        });
        let proofs = accounts.iter().flat_map(|account| {
            let of_account = account["proofs"].as_array().map(Vec::as_slice).unwrap_or_default();
            let of = [text(account, "/type"), text(account, "/accountIdentifier")].join(" ");
            // Several are told apart by their place.
            let title = move |place: usize| match of_account.len() {
                1 => format!("Proof of {of}"),
                all => format!("Proof {place} of {all} of {of}"),
            };
            (1_usize..).zip(of_account).map(move |(at, proof)| picture(title(at), proof, "proofs"))
        });
        sides.chain(proofs).collect()
    }

    /// The picture in place, closed at first, with its sizes; what is no image as a link.
    pub(super) fn show(&self) -> Markup {
        let Self { title, url, is_image } = self;
        html! {
            @if *is_image {
                details.dialog.zoom {
                    summary { (title) }
                    div {
                        fieldset.row {
                            legend { "Size" }
                            @for (value, label) in ZOOMS {
                                label.tick {
                                    input type="radio" name={ "zoom " (url) } value=(value)
                                        checked[value == ZOOMS[0].0];
                                    span { (label) }
                                }
                            }
                        }
                        div.picture tabindex="0" role="region" aria-label=(title) {
                            img src=(url) alt=(title) loading="lazy";
                        }
                    }
                }
            } @else {
                p { a.action href=(url) target="_blank" rel="noreferrer" { (title) } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn proofs_of_one_account_have_titles_of_their_own() {
        let titles = |proofs: Value| {
            let account = json!({"type": "card", "accountIdentifier": "1", "proofs": proofs});
            let all = Picture::all(&Value::Null, &[account], "u");
            all.into_iter().map(|picture| picture.title).collect::<Vec<_>>()
        };
        assert_eq!(titles(json!([{"id": "a"}])), ["Proof of card 1"]);
        let two = titles(json!([{"id": "a"}, {"id": "b"}]));
        assert_eq!(two, ["Proof 1 of 2 of card 1", "Proof 2 of 2 of card 1"]);
        assert_eq!(titles(Value::Null), [""; 0]);
    }
}
