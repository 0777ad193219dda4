//! The documentation at `/docs`: guides, a page for each operation, errors, models, and files for
//! tools. Everything is made once, from the OpenAPI document and the guides beside this file.

mod guides;
mod layout;
mod postman;
mod reference;
mod samples;
mod schema;
mod site;
mod try_it;

use std::sync::OnceLock;

use http::header::ETAG;
use http::{Method, StatusCode};

use self::site::{File, Site};
use crate::Core;
use crate::auth::caller::Anyone;
use crate::endpoint::{Cache, Endpoint};
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::platform::error::{Code, Result};

/// The start page.
pub struct Show;

impl Endpoint for Show {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/docs";
    const CACHE: Cache = Cache::Revalidate;
    type Caller = Anyone;
    type Request = ();
    type Response = Reply;

    fn read(_: &Input, _: &Anyone) -> Result<()> {
        Ok(())
    }

    async fn call(core: &Core, _: Anyone, (): ()) -> Result<Reply> {
        answer(core, "")
    }
}

/// Any other page or file.
pub struct ShowPage;

impl Endpoint for ShowPage {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/docs/{page}";
    const CACHE: Cache = Cache::Revalidate;
    type Caller = Anyone;
    type Request = String;
    type Response = Reply;

    fn read(input: &Input, _: &Anyone) -> Result<String> {
        Ok(input.param("page").to_owned())
    }

    async fn call(core: &Core, _: Anyone, page: String) -> Result<Reply> {
        answer(core, &page)
    }
}

/// The documentation as a text for language models.
pub struct Llms;

impl Endpoint for Llms {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/llms.txt";
    const CACHE: Cache = Cache::Revalidate;
    type Caller = Anyone;
    type Request = ();
    type Response = Reply;

    fn read(_: &Input, _: &Anyone) -> Result<()> {
        Ok(())
    }

    async fn call(core: &Core, _: Anyone, (): ()) -> Result<Reply> {
        answer(core, "llms.txt")
    }
}

fn answer(core: &Core, name: &str) -> Result<Reply> {
    static SITE: OnceLock<Site> = OnceLock::new();
    let site = SITE.get_or_init(|| Site::new(core.apis.partners));
    let File { media_type, content, tag } = site.file(name).ok_or(Code::RouteNotFound)?;
    let mut reply = Reply::with_body(StatusCode::OK, media_type, content);
    reply.headers.insert(ETAG, tag);
    reply.set("content-security-policy", layout::POLICY.as_str());
    reply.set("referrer-policy", "no-referrer");
    reply.set("x-content-type-options", "nosniff");
    reply.set("x-frame-options", "DENY");
    Ok(reply)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use maud::html;
    use serde_json::Value;

    use super::*;
    use crate::notify::events::EventType;
    use crate::platform::error::Error;
    use crate::platform::settings::RateLimits;
    use crate::tenancy::tenants::Scope;
    use crate::{ENDPOINTS, PARTNERS_API};

    /// Largest page, in bytes before compression: a page of text shrinks to a fifth or less.
    const PAGE_BYTES_MAX: usize = 400 * 1024;

    fn pages() -> BTreeMap<String, String> {
        let site = Site::new(&PARTNERS_API);
        let text = |content: &[u8]| String::from_utf8(content.to_vec()).unwrap();
        site.files().map(|(name, file)| (name.clone(), text(&file.content))).collect()
    }

    #[test]
    fn every_endpoint_has_a_page_with_six_languages() {
        let pages = pages();
        for route in ENDPOINTS {
            let path = format!("<code>{}</code>", route.path);
            let found = pages.values().find(|page| {
                page.contains(&format!(
                    "<span class=\"method\">{}</span>{path}",
                    route.method.as_str().to_lowercase()
                ))
            });
            let page = found.unwrap_or_else(|| panic!("{route:?} has no page"));
            for language in ["curl", "Python", "TypeScript", "Go", "Rust", "PHP"] {
                assert!(page.contains(&format!("<summary>{language}</summary>")), "{route:?}");
            }
        }
    }

    #[test]
    fn every_link_leads_to_a_page_and_a_place_on_it() {
        let pages = pages();
        let mut links = 0;
        for (name, page) in &pages {
            let targets = page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
            for target in targets.filter(|target| !matches!(*target, "/openapi.json" | "/llms.txt"))
            {
                let (path, place) = target.split_once('#').unwrap_or((target, ""));
                let linked = path.strip_prefix("/docs").map(|rest| rest.trim_start_matches('/'));
                let linked = linked.and_then(|linked| pages.get(linked));
                let linked = linked.unwrap_or_else(|| panic!("{name}: {target}"));
                assert!(
                    place.is_empty() || linked.contains(&format!("id=\"{place}\"")),
                    "{target}"
                );
                links += 1;
            }
        }
        assert!(links > 50 * ENDPOINTS.len());
    }

    #[test]
    fn every_code_has_a_place_on_the_start_page_and_among_the_errors() {
        let pages = pages();
        for code in Code::ALL {
            for page in ["", "errors"] {
                assert!(pages[page].contains(&format!("id=\"{}\"", code.as_str())), "{code:?}");
            }
        }
    }

    #[test]
    fn an_error_leads_to_its_cause_and_cure() {
        let pages = pages();
        for code in Code::ALL {
            let reply = Error::from(*code).reply("request");
            let body: Value = serde_json::from_slice(&reply.body).unwrap();
            let link = body["errors"][code.as_str()]["documentation"].as_str().unwrap();
            let (page, place) = link.strip_prefix("/docs/").unwrap().split_once('#').unwrap();
            let (_, rest) = pages[page].split_once(&format!("<section id=\"{place}\">")).unwrap();
            let (section, _) = rest.split_once("</section>").unwrap();
            for text in [code.message(), code.solution()] {
                assert!(section.contains(&html! { (text) }.into_string()), "{link}: {text}");
            }
        }
    }

    #[test]
    fn a_code_with_several_statuses_names_each() {
        let errors = &pages()["errors"];
        let (_, rest) = errors.split_once("<section id=\"ER048\">").unwrap();
        let (section, _) = rest.split_once("</section>").unwrap();
        assert!(section.contains("Status 400, 408, 413, 414, 431."), "{section}");
    }

    #[test]
    fn every_event_and_every_scope_is_explained() {
        let pages = pages();
        let events = EventType::NAMES.map(|name| ("webhooks", name));
        let scopes = Scope::NAMES.map(|name| ("authentication", name));
        for (page, name) in events.into_iter().chain(scopes) {
            assert!(pages[page].contains(&format!("<code>{name}</code>")), "{name}");
        }
    }

    #[test]
    fn rates_stand_in_the_guide_and_on_the_pages_that_they_bound() {
        let pages = pages();
        let rates = RateLimits::default();
        let partners = [rates.address, rates.client, rates.quotes, rates.credentials];
        for rate in partners.into_iter().chain([rates.login, rates.client_login, rates.uploads]) {
            let rate = format!("<code>{rate}</code>");
            assert!(pages["idempotency-and-retries"].contains(&rate), "{rate}");
        }
        let bounded =
            ["authenticate", "refreshToken", "logIn", "checkEmailAddress", "requestPasswordReset"];
        for page in bounded {
            assert!(pages[page].contains(" a minute "), "{page}");
        }
    }

    #[test]
    fn the_index_leads_to_parts_of_guides_and_to_models() {
        let pages = pages();
        for place in [
            "webhooks#verify-before-you-read",
            "sandbox#magic-values",
            "quote-to-order#states-of-an-order",
            "errors",
            "models#ErrorCode",
        ] {
            let address = format!("\"/docs/{place}\"");
            for page in ["", "index.json"] {
                assert!(pages[page].contains(&address), "{place} is not on '{page}'");
            }
        }
    }

    #[test]
    fn the_contents_can_be_skipped_by_keyboard() {
        for (name, page) in pages().iter().filter(|(_, page)| page.starts_with("<!DOCTYPE")) {
            let here = if name.is_empty() { "/docs".to_owned() } else { format!("/docs/{name}") };
            let skip = format!("<body><a class=\"skip\" href=\"{here}#page\">");
            assert!(page.contains(&skip), "{name}");
        }
    }

    #[test]
    fn pages_are_small_and_load_nothing() {
        for (name, page) in pages() {
            assert!(page.len() <= PAGE_BYTES_MAX, "{name} has {} bytes", page.len());
            for forbidden in [" src=", " style=", "@import", "url("] {
                let is_page = page.starts_with("<!DOCTYPE");
                assert!(!is_page || !page.contains(forbidden), "{name}: {forbidden}");
            }
        }
    }
}
