//! The frame of every page of the documentation: style, contents, search.

use std::sync::LazyLock;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::http::html::source_digest;

/// The style sheet; its digest is part of the content security policy.
pub(super) const STYLE: &str = "\
:root{color-scheme:light dark;font:1rem/1.55 system-ui,sans-serif;--link:light-dark(#0b57d0,#a8c7fa);\
background:light-dark(#fff,#111317);color:light-dark(#1a1c20,#eceef2)}\
body{margin:0;display:grid;grid-template-columns:18rem minmax(0,52rem);gap:2.5rem;padding:0 1.25rem}\
nav{position:sticky;top:0;box-sizing:border-box;height:100vh;overflow:auto;font-size:.875rem;padding:1rem 0}\
nav ul{list-style:none;padding:0;margin:.25rem 0 1rem}\
nav li a{display:block;padding:.2rem 0}\
main{padding:1rem 0 4rem;min-width:0}\
a{color:var(--link);overflow-wrap:anywhere}\
nav a{text-decoration:none;color:inherit}\
nav a:hover,nav a[aria-current]{text-decoration:underline}\
h1{font-size:1.75rem;line-height:1.2;margin:.5rem 0 1rem}\
h2{font-size:1.25rem;margin:2rem 0 .5rem}\
h3{font-size:1rem;margin:1.25rem 0 .25rem}\
section{scroll-margin-top:1rem}\
code,pre{font:.875em/1.5 ui-monospace,monospace;overflow-wrap:anywhere}\
pre{background:light-dark(#f2f4f7,#1e2227);padding:.75rem;border-radius:.375rem;overflow:auto;white-space:pre-wrap}\
.wide{overflow-x:auto}\
table{border-collapse:collapse;width:100%;font-size:.9rem}\
th,td{text-align:left;vertical-align:top;padding:.3rem .75rem .3rem 0;border-top:1px solid #8884}\
th{font-weight:600}\
tbody th,tr th[scope]{font-weight:normal}\
@media(min-width:60rem){th[scope=row] code,td:first-child code{white-space:nowrap}}\
summary{cursor:pointer;padding:.25rem 0}\
label{display:grid;gap:.25rem}\
[hidden]{display:none}\
input,textarea,select,button{box-sizing:border-box;font:inherit;padding:.5rem;border:1px solid;border-radius:.375rem;\
background:transparent;color:inherit}\
input,textarea,select{width:100%}\
textarea{font:.875em/1.5 ui-monospace,monospace}\
button{padding:.5rem 1.25rem;cursor:pointer;font-weight:600}\
form{display:grid;gap:.75rem;max-width:40rem}\
.quiet{font-size:.9rem;opacity:.85}\
.method{font-weight:bold;text-transform:uppercase;margin-right:.5rem}\
.skip{position:absolute;left:-99rem}\
.skip:focus{left:.5rem;top:.5rem;padding:.5rem;z-index:1;background:light-dark(#fff,#111317)}\
:focus-visible{outline:3px solid #b06000;outline-offset:2px}\
@media(max-width:60rem){body{display:block}\
nav{position:static;height:auto;max-height:14rem;border-bottom:1px solid #8884}}\
@media(max-width:40rem){.wide thead{display:none}.wide tr,.wide th,.wide td{display:block}\
.wide th,.wide td{border:0;padding:.15rem 0}.wide tr{border-top:1px solid #8884;padding:.3rem 0}}";

/// Searches the index, and sends what the form of an operation describes.
const SCRIPT: &str = include_str!("page.js");

/// The content security policy: one style and one script, both by their digests.
pub(super) static POLICY: LazyLock<String> = LazyLock::new(|| {
    format!(
        "default-src 'none'; style-src {}; script-src {}; connect-src 'self'; form-action 'none'; \
         base-uri 'none'; frame-ancestors 'none'",
        source_digest(STYLE),
        source_digest(SCRIPT),
    )
});

/// The contents beside a page: headings, each with names of pages and what they are called.
pub(super) type Contents<'a> = Vec<(&'a str, Vec<(&'a str, &'a str)>)>;

/// A whole page. `name` is the page's own.
pub(super) fn frame(name: &str, title: &str, contents: &Contents<'_>, main: &Markup) -> String {
    let here = if name.is_empty() { "/docs".to_owned() } else { format!("/docs/{name}") };
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " - Rampart API" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                a.skip href={ (here) "#page" } { "Skip the contents" }
                nav aria-label="Contents" {
                    p { a href="/docs" aria-current=[name.is_empty().then_some("page")] {
                        "Rampart API: start and search"
                    } }
                    @for (heading, pages) in contents {
                        strong { (heading) }
                        ul {
                            @for (page, title) in pages {
                                li { a href={ "/docs/" (page) } aria-current=[(page == &name).then_some("page")] {
                                    (title)
                                } }
                            }
                        }
                    }
                }
                main #page { (main) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}
