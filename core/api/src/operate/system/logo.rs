//! `GET /brand/{slug}/{file}`: a partner's logo. Its path has the digest, so that a browser keeps it for
//! good.

use bytes::Bytes;
use http::{Method, StatusCode};

use crate::Core;
use crate::auth::caller::{Anyone, Client};
use crate::endpoint::Endpoint;
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::platform::error::{Code, Result};
use crate::tenancy::tenants::branding::is_path_of;

/// Shows the logo.
pub struct Show;

impl Endpoint for Show {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/brand/{slug}/{file}";
    type Caller = Anyone;
    type Request = (String, String, String);
    type Response = Reply;

    fn read(input: &Input, _: &Anyone) -> Result<(String, String, String)> {
        let request_id = input.head.request_id.clone();
        Ok((input.param("slug").to_owned(), input.head.path.clone(), request_id))
    }

    async fn call(
        core: &Core,
        _: Anyone,
        (slug, path, request_id): (String, String, String),
    ) -> Result<Reply> {
        let snapshot = core.snapshots.current();
        let tenant = snapshot.tenant_by_slug(&slug);
        let tenant = tenant.filter(|tenant| tenant.brand.logo.as_deref() == Some(&*path));
        let client = tenant.and_then(|tenant| Client::for_page(core, tenant.id, &request_id));
        let Some(client) = client else { return Err(Code::RouteNotFound.into()) };
        let content = sqlx::query_scalar!(
            "select png from client_logo where client_id = $1",
            client.id().uuid()
        )
        .fetch_optional(&core.db)
        .await?;
        let Some(content) = content else { return Err(Code::RouteNotFound.into()) };
        let media_type = if path.ends_with(".svg") { "image/svg+xml" } else { "image/png" };
        let mut reply = Reply::with_body(StatusCode::OK, media_type, Bytes::from(content));
        // A logo that has just been replaced is known here by the path of the one before.
        let caching = match is_path_of(&path, &reply.body) {
            true => "public, max-age=31536000, immutable",
            false => "no-store",
        };
        reply.set("cache-control", caching);
        reply.set("content-security-policy", "default-src 'none'");
        reply.set("x-content-type-options", "nosniff");
        Ok(reply)
    }
}
