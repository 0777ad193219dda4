//! `GET /docs`: the OpenAPI document as an HTML page, rendered here, without scripts or external
//! resources.

mod curl;
mod page;
mod schema;
mod walk;

use std::sync::{LazyLock, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Method, StatusCode};
use ring::digest;

use crate::Core;
use crate::auth::caller::Anyone;
use crate::endpoint::{Cache, Endpoint};
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::platform::error::{Code, Result};

/// The page. It has no version: the operations that it describes have.
pub struct Show;

impl Endpoint for Show {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/docs";
    const ERRORS: &'static [Code] = &[];
    const CACHE: Cache = Cache::Revalidate;
    type Caller = Anyone;
    type Request = ();
    type Response = Reply;

    fn read(_: &Input, _: &Anyone) -> Result<()> {
        Ok(())
    }

    async fn call(core: &Core, _: Anyone, (): ()) -> Result<Reply> {
        static PAGE: OnceLock<Bytes> = OnceLock::new();
        let document = core.partners_api.document();
        let page = PAGE.get_or_init(|| page::render(document).into_string().into());
        let media_type = "text/html; charset=utf-8";
        let mut reply = Reply::with_body(StatusCode::OK, media_type, page.clone());
        reply.set("content-security-policy", &POLICY);
        reply.set("referrer-policy", "no-referrer");
        reply.set("x-content-type-options", "nosniff");
        reply.set("x-frame-options", "DENY");
        Ok(reply)
    }
}

/// The content security policy: no scripts, no loading, one inline style by its digest.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    let style = STANDARD.encode(digest::digest(&digest::SHA256, page::STYLE.as_bytes()));
    format!(
        "default-src 'none'; style-src 'sha256-{style}'; form-action 'none'; base-uri 'none'; \
         frame-ancestors 'none'"
    )
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{ENDPOINTS, PARTNERS_API};

    fn text() -> String {
        page::render(PARTNERS_API.document()).into_string()
    }

    #[test]
    fn every_endpoint_has_its_place() {
        let page = text();
        for route in ENDPOINTS {
            let heading = format!("<code>{}</code>", route.path);
            assert!(page.contains(&heading), "{route:?}");
        }
    }

    #[test]
    fn every_link_leads_to_a_place_on_the_page() {
        let page = text();
        let mut links = 0;
        for target in page.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(page.contains(&format!("id=\"{target}\"")), "#{target}");
            links += 1;
        }
        assert!(links > ENDPOINTS.len());
    }

    #[test]
    fn nothing_runs_or_is_loaded() {
        let page = text();
        for forbidden in ["<script", "src=", "style=", "@import", "url("] {
            assert!(!page.contains(forbidden), "{forbidden}");
        }
        let style = page.split("<style>").nth(1).unwrap().split("</style>").next().unwrap();
        let digest = STANDARD.encode(digest::digest(&digest::SHA256, style.as_bytes()));
        assert!(POLICY.contains(&format!("style-src 'sha256-{digest}'")));
    }
}
