//! `DELETE /api/v2/webhooks/{id}`: removes an endpoint and cancels its pending deliveries.

use http::Method;

use super::{EXAMPLE, Endpoint};
use crate::Core;
use crate::auth::caller::Client;
use crate::endpoint::openapi::doc::{Doc, Kind, required};
use crate::endpoint::{self, Json};
use crate::http::request::Input;
use crate::platform::db::Connection;
use crate::platform::error::{Code, Error, Result};
use crate::tenancy::tenants::Scope;
use rampart_types::{ClientId, WebhookEndpointId};

/// Version 2, the only one.
pub struct V2;

impl endpoint::Endpoint for V2 {
    const METHOD: Method = Method::DELETE;
    const PATH: &'static str = "/api/v2/webhooks/{id}";
    const SCOPE: Option<Scope> = Some(Scope::WebhooksWrite);
    const DOC: Doc = Doc {
        summary: "Remove a webhook endpoint",
        details: "Deliveries that wait for it are not sent any more. The answer is the endpoint as \
                  it was.",
        path: &[required("id", Kind::Format("uuid"), "The endpoint's id.")],
        answer: EXAMPLE,
        also: &[(404, Code::RouteNotFound)],
        ..Doc::NONE
    };
    type Caller = Client;
    type Request = WebhookEndpointId;
    type Response = Json<Endpoint>;

    fn read(input: &Input, _: &Client) -> Result<WebhookEndpointId> {
        input.param("id").parse().map_err(|_| unknown())
    }

    /// The endpoint as it was.
    async fn call(core: &Core, client: Client, id: WebhookEndpointId) -> Result<Json<Endpoint>> {
        let mut conn = core.db.acquire().await?;
        remove(&mut conn, client.id(), id).await?.map(Json).ok_or_else(unknown)
    }
}

/// Removes an endpoint and returns it as it was; `None` when there is none of this id.
///
/// # Errors
/// When the database cannot be written.
pub async fn remove(
    conn: &mut Connection,
    client: ClientId,
    id: WebhookEndpointId,
) -> Result<Option<Endpoint>> {
    let removed = sqlx::query_as!(
        Endpoint,
        r#"
        delete from webhook_endpoint where client_id = $1 and endpoint_id = $2
        returning endpoint_id as id, url, events, disabled_at is not null as "disabled!",
            disabled_at, failing_since, created_at
        "#,
        client.uuid(),
        id.uuid(),
    )
    .fetch_optional(conn)
    .await?;
    Ok(removed)
}

/// Somebody else's endpoint is as unknown as none.
fn unknown() -> Error {
    Error::with_detail(Code::RouteNotFound, "there is no such webhook endpoint")
}
