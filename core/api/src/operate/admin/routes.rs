//! `GET /admin/v1/routes` and `PUT /admin/v1/routes`

use std::sync::Arc;

use http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::connectors::create::{asset_code, check_method};
use super::market::publish;
use super::operator::Operator;
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Shape};
use crate::endpoint::{Body, Endpoint, Json};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::money::connectors::commands::Direction;
use crate::money::connectors::routed_commands;
use crate::money::connectors::sandbox::timing;
use crate::platform::db::Connection;
use crate::platform::error::{Denial, Error, Result};

/// Most routes.
const ROUTES_MAX: usize = 10_000;

const EXAMPLE: &str = r#"{"routes": [
    {"partner": null, "method": "creditCard", "direction": "in", "connector": "cards"},
    {"partner": null, "asset": "ETH", "direction": "out", "connector": "chain"}]}"#;

/// `GET /admin/v1/routes`
pub struct ReadRoutes;

impl Endpoint for ReadRoutes {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/routes";
    const ROLES: &'static [Role] = Role::ALL;
    const DOC: Doc = Doc {
        summary: "Read all routes",
        details: "In their order: the first match counts.",
        answer: EXAMPLE,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = ();
    type Response = Json<Routes>;

    fn read(_: &Input, _: &Operator) -> Result<()> {
        Ok(())
    }

    async fn call(core: &Core, _: Operator, (): ()) -> Result<Json<Routes>> {
        let mut conn = core.db.acquire().await?;
        Ok(Json(Routes::stored(&mut conn).await?))
    }
}

/// `PUT /admin/v1/routes`
pub struct PutRoutes;

impl Endpoint for PutRoutes {
    const METHOD: Method = Method::PUT;
    const PATH: &'static str = "/admin/v1/routes";
    const ROLES: &'static [Role] = &[Role::Treasury, Role::Platform];
    const APPROVAL: bool = true;
    const RETRIED: bool = true;
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Replace all routes",
        details: "The first match counts. A route of money names a payment method, one of coins \
                  an asset; `in` is what users send, `out` what is sent to them. Without a partner \
                  it is for every live one: a test client is served by the sandbox, unless routes \
                  of its own lead what its users send to a connector; without a route of its own \
                  the sandbox sends the rest, too. Commands that nobody has leased yet follow the \
                  new routes.",
        body: Shape::of::<Routes>(),
        request: EXAMPLE,
        answer: EXAMPLE,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Routes;
    type Response = Json<Routes>;

    fn read(input: &Input, _: &Operator) -> Result<Routes> {
        let routes: Routes = strict::body(input)?;
        routes.check()?;
        Ok(routes)
    }

    async fn needs_approval(core: &Core, _: &Operator, put: &Routes) -> Result<bool> {
        put.clone().resolve(core)?;
        let mut conn = core.db.acquire().await?;
        put.check_names(&mut conn).await?;
        Ok(true)
    }

    async fn call(core: &Core, operator: Operator, mut put: Routes) -> Result<Json<Routes>> {
        put.resolve(core)?;
        let mut tx = core.db.begin().await?;
        put.write(&mut tx).await?;
        publish(core, tx, &operator, "routes.replace", "routes", json!(put)).await?;
        Ok(Json(put))
    }
}

/// All routes.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Routes {
    /// In their order, at most 10000.
    routes: Vec<RouteEntry>,
}

impl Routes {
    /// All of them, in their order.
    pub(super) async fn stored(conn: &mut Connection) -> Result<Self> {
        let rows = sqlx::query!(
            "select partner, payment_method, asset, direction, connector from route \
             order by position"
        )
        .fetch_all(conn)
        .await?;
        let routes = rows.into_iter().map(|row| {
            let direction = Direction::from_name(&row.direction)
                .ok_or_else(|| Error::invariant("read the direction of a route"))?;
            let (partner, method) = (row.partner, row.payment_method);
            let (asset, connector) = (row.asset, row.connector);
            Ok(RouteEntry { partner, method, asset, direction, connector })
        });
        Ok(Self { routes: routes.collect::<Result<_>>()? })
    }

    /// Checks what one look at the members shows.
    ///
    /// # Errors
    /// 422 when there are too many, or one names not exactly a method or an asset.
    pub(super) fn check(&self) -> Result<()> {
        if self.routes.len() > ROUTES_MAX {
            return Err(Denial::unprocessable(format!("routes: at most {ROUTES_MAX}")).into());
        }
        for (index, route) in self.routes.iter().enumerate() {
            // It takes what no route leads away, of test clients alone.
            if route.connector == timing::NAME {
                let reason = format!("routes[{index}].connector: no such connector");
                return Err(Denial::unprocessable(reason).into());
            }
            if route.method.is_some() == route.asset.is_some() {
                let reason = format!("routes[{index}]: a method or an asset, and not both");
                return Err(Denial::unprocessable(reason).into());
            }
        }
        Ok(())
    }

    /// Spells assets as they are stored.
    ///
    /// # Errors
    /// 422 for a method or an asset that the catalogue lacks.
    pub(super) fn resolve(&mut self, core: &Core) -> Result<()> {
        let catalogue = Arc::clone(&core.snapshots.current().catalogue);
        for (index, route) in self.routes.iter_mut().enumerate() {
            match (&route.method, &route.asset) {
                (Some(method), _) => check_method(&catalogue, method)
                    .map_err(|error| in_route(index, "method", error))?,
                (None, Some(asset)) => {
                    let code = asset_code(&catalogue, asset);
                    route.asset = Some(code.map_err(|error| in_route(index, "asset", error))?);
                }
                (None, None) => {}
            }
        }
        Ok(())
    }

    /// Checks that the partner and the connector of every route exist.
    ///
    /// # Errors
    /// 422 with the first route that names one that does not.
    async fn check_names(&self, conn: &mut Connection) -> Result<()> {
        let wrong = sqlx::query!(
            r#"
            select r.position as "position!",
                r.partner is not null and c.slug is null as "lacks_partner!"
            from rows from (jsonb_to_recordset($1::jsonb) as (partner text, connector text)
            ) with ordinality as r (partner, connector, position)
            left join client c on c.slug = r.partner
            where (r.partner is not null and c.slug is null)
                or not exists (select from connector k where k.name = r.connector)
            order by r.position limit 1
            "#,
            sqlx::types::Json(&*self.routes) as sqlx::types::Json<&[RouteEntry]>,
        );
        let Some(wrong) = wrong.fetch_optional(conn).await? else { return Ok(()) };
        let member = if wrong.lacks_partner { "partner" } else { "connector" };
        let reason = format!("routes[{}].{member}: no such {member}", wrong.position - 1);
        Err(Denial::unprocessable(reason).into())
    }

    /// Writes the routes in place of all others. Commands that nobody has leased follow them.
    ///
    /// # Errors
    /// 422 when a partner or a connector does not exist.
    pub(super) async fn write(&self, conn: &mut Connection) -> Result<()> {
        // Of two replacements at once, the later one stays.
        sqlx::query!("lock table route in share row exclusive mode").execute(&mut *conn).await?;
        self.check_names(conn).await?;
        sqlx::query!("delete from route").execute(&mut *conn).await?;
        sqlx::query!(
            r#"
            insert into route (position, partner, payment_method, asset, direction, connector)
            select position, partner, method, asset, direction, connector
            from rows from (jsonb_to_recordset($1::jsonb) as (
                partner text, method text, asset text, direction text, connector text)
            ) with ordinality as r (partner, method, asset, direction, connector, position)
            "#,
            sqlx::types::Json(&*self.routes) as sqlx::types::Json<&[RouteEntry]>,
        )
        .execute(&mut *conn)
        .await
        .map_err(|error| match error.as_database_error().and_then(|e| e.constraint()) {
            Some("route_partner_fkey") => Denial::unprocessable("no such partner").into(),
            Some("route_connector_fkey") => Denial::unprocessable("no such connector").into(),
            _ => Error::from(error),
        })?;
        routed_commands::move_all(conn).await?;
        Ok(())
    }
}

/// The error, as one of this member of the route at this place.
fn in_route(index: usize, member: &str, error: Error) -> Error {
    match error {
        Error::Denied(denial) => {
            let reason = format!("routes[{index}].{member}: {}", denial.reason());
            Denial::new(denial.status(), reason).into()
        }
        error => error,
    }
}

/// A route.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[schemars(rename = "Route")]
#[serde(deny_unknown_fields)]
pub struct RouteEntry {
    /// The partner's slug; null for every live one.
    partner: Option<String>,
    /// The payment method's code, of a route of money.
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    /// The asset's code or CAIP-19 id, of a route of coins.
    #[serde(skip_serializing_if = "Option::is_none")]
    asset: Option<String>,
    direction: Direction,
    /// The connector's name.
    connector: String,
}
