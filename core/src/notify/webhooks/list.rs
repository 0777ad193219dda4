//! `GET /api/v2/webhooks`: the tenant's endpoints, oldest first.

use http::Method;

use super::Endpoint;
use crate::Core;
use crate::auth::caller::Client;
use crate::endpoint::openapi::doc::Doc;
use crate::endpoint::{self, Json};
use crate::http::request::Input;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::tenancy::tenants::Scope;
use rampart_types::ClientId;

/// Version 2, the only one.
pub struct V2;

impl endpoint::Endpoint for V2 {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/api/v2/webhooks";
    const SCOPE: Option<Scope> = Some(Scope::WebhooksWrite);
    const DOC: Doc = Doc {
        summary: "List the webhook endpoints",
        answer: r#"[{"id": "0190b5d8-7a3c-7c3e-9d8a-3f1f6a1f2b3c",
            "url": "https://shop.example/hook", "events": null, "disabled": false,
            "disabledAt": null, "createdAt": "2026-03-01T12:00:00Z"}]"#,
        ..Doc::NONE
    };
    type Caller = Client;
    type Request = ();
    type Response = Json<Vec<Endpoint>>;

    fn read(_: &Input, _: &Client) -> Result<()> {
        Ok(())
    }

    async fn call(core: &Core, client: Client, (): ()) -> Result<Json<Vec<Endpoint>>> {
        let mut conn = core.db.acquire().await?;
        Ok(Json(endpoints(&mut conn, client.id()).await?))
    }
}

/// The endpoints of a client, oldest first.
///
/// # Errors
/// When the database cannot be read.
pub async fn endpoints(conn: &mut Connection, client: ClientId) -> Result<Vec<Endpoint>> {
    let endpoints = sqlx::query_as!(
        Endpoint,
        r#"
        select endpoint_id as id, url, events, disabled_at is not null as "disabled!",
            disabled_at, failing_since, created_at
        from webhook_endpoint where client_id = $1 order by endpoint_id
        "#,
        client.uuid(),
    )
    .fetch_all(conn)
    .await?;
    Ok(endpoints)
}
