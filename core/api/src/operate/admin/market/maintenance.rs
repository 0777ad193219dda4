//! `GET` and `POST /admin/v1/maintenance-windows`, `DELETE /admin/v1/maintenance-windows/{id}`

use std::sync::Arc;

use chrono::{DateTime, Utc};
use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::publish;
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Kind, Shape, required};
use crate::endpoint::{Body, Created, Endpoint, NoContent};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::operate::admin::line;
use crate::operate::admin::operator::Operator;
use crate::operate::admin::page::{AFTER, Page, Part, check_after, limit};
use crate::platform::db::Connection;
use crate::platform::error::{Denial, Error, Result};
use crate::platform::revision;
use rampart_types::PairCode;

/// Most windows of one answer.
const LISTED_MAX: i64 = 200;
/// Most windows that have not ended.
const OPEN_MAX: i64 = 100;

macro_rules! example {
    () => {
        r#"{"id": "0199a000-0000-7000-8000-000000000031", "status": "upcoming",
            "pair": "BTC-EUR", "paymentMethod": null, "startsAt": "2026-03-01T12:00:00Z",
            "endsAt": "2026-03-01T14:00:00Z", "reason": "upgrade of the node",
            "createdBy": "ada", "createdAt": "2026-02-27T09:00:00Z"}"#
    };
}

/// `GET /admin/v1/maintenance-windows`
pub struct ListMaintenanceWindows;

impl Endpoint for ListMaintenanceWindows {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/maintenance-windows";
    const ROLES: &'static [Role] = Role::ALL;
    const DOC: Doc = Doc {
        summary: "List the maintenance windows",
        details: "Upcoming, running and past ones, the latest start first.",
        query: &[AFTER, limit(LISTED_MAX)],
        answer: concat!("[", example!(), "]"),
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Part<Uuid>;
    type Response = Page<Window>;

    fn read(input: &Input, _: &Operator) -> Result<Part<Uuid>> {
        Part::read(input, LISTED_MAX)
    }

    async fn call(core: &Core, _: Operator, part: Part<Uuid>) -> Result<Page<Window>> {
        let mut conn = core.db.acquire().await?;
        if let Some(after) = part.after {
            let exists = sqlx::query_scalar!(
                "select exists (select from maintenance_window where window_id = $1) \
                     as \"exists!\"",
                after,
            );
            check_after(exists.fetch_one(&mut *conn).await?)?;
        }
        let windows = sqlx::query_as!(
            Window,
            r#"
            select window_id as id, pair, payment_method, starts_at, ends_at, reason, created_by,
                created_at,
                case when has_ended or ends_at <= rampart_now() then 'past'
                    when has_begun or starts_at <= rampart_now() then 'running'
                    else 'upcoming' end as "status!"
            from maintenance_window
            where $1::uuid is null or (starts_at, window_id) <
                (select starts_at, window_id from maintenance_window where window_id = $1)
            order by starts_at desc, window_id desc limit $2
            "#,
            part.after,
            part.paging.rows_max(),
        )
        .fetch_all(&mut *conn)
        .await?;
        Ok(part.paging.page(windows, |window| window.id))
    }
}

/// `POST /admin/v1/maintenance-windows`
pub struct CreateMaintenanceWindow;

impl Endpoint for CreateMaintenanceWindow {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/admin/v1/maintenance-windows";
    const STATUSES: &'static [StatusCode] = &[StatusCode::CONFLICT];
    const ROLES: &'static [Role] = &[Role::Treasury];
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Create a maintenance window",
        details: "While it runs, the enabled sides of the pair are in maintenance (ER008, ER016), \
                  or the payment method is not offered (ER055). Every edge follows its start and \
                  its end within about a second; afterwards the own status counts again. 409 \
                  while 100 windows have not ended.",
        body: Shape::of::<NewWindow>(),
        request: r#"{"pair": "BTC-EUR", "startsAt": "2999-03-01T12:00:00Z",
            "endsAt": "2999-03-01T14:00:00Z", "reason": "upgrade of the node"}"#,
        answer: example!(),
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = NewWindow;
    type Response = Created<Window>;

    fn read(input: &Input, _: &Operator) -> Result<NewWindow> {
        let new: NewWindow = strict::body(input)?;
        new.check()?;
        Ok(new)
    }

    async fn call(core: &Core, operator: Operator, mut new: NewWindow) -> Result<Created<Window>> {
        new.resolve(core)?;
        let id = core.clock.uuid()?;
        let mut tx = core.db.begin().await?;
        // From here on whoever makes another one waits, and counts this one.
        revision::catalogue_changed(&mut tx).await?;
        let made = new.insert(&mut tx, id, operator.actor()).await?;
        let made = made.ok_or_else(|| {
            Denial::conflict(format!("{OPEN_MAX} windows have not ended: end or withdraw one"))
        })?;
        let target = made.pair.as_ref().or(made.payment_method.as_ref());
        let target = target.map_or("", String::as_str);
        let action = "maintenance-window.create";
        publish(core, tx, &operator, action, target, json!(made)).await?;
        Ok(Created(made))
    }
}

/// A maintenance window to be made: of a pair or of a payment method.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "NewMaintenanceWindow")]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct NewWindow {
    /// The pair that is closed, such as `BTC-EUR`.
    pair: Option<String>,
    /// Code of the payment method that is not offered, in place of a pair.
    payment_method: Option<String>,
    /// Its start; now if it is left out or over.
    starts_at: Option<DateTime<Utc>>,
    /// Its end, after the start and to come.
    ends_at: DateTime<Utc>,
    /// For the audit, 1 to 255 characters.
    reason: String,
}

impl NewWindow {
    /// Checks what one look at the members shows.
    ///
    /// # Errors
    /// 422 unless it is of a pair or of a method, and for a reason that is none.
    fn check(&self) -> Result<()> {
        if self.pair.is_some() == self.payment_method.is_some() {
            let wanted = "pair: a window has a pair or a paymentMethod, and not both";
            return Err(Denial::unprocessable(wanted).into());
        }
        line::check("reason", &self.reason)
    }

    /// Spells the pair as it is stored.
    ///
    /// # Errors
    /// 422 for a pair or a method that the catalogue lacks.
    fn resolve(&mut self, core: &Core) -> Result<()> {
        let catalogue = Arc::clone(&core.snapshots.current().catalogue);
        if let Some(pair) = &mut self.pair {
            let code = pair.parse::<PairCode>().ok();
            let code = code.filter(|code| catalogue.pairs.contains_key(code));
            *pair = code.ok_or_else(|| Denial::unprocessable("pair: no such pair"))?.to_string();
        }
        let method = self.payment_method.as_deref();
        if method.is_some_and(|method| catalogue.payment_method(method).is_none()) {
            let unknown = "paymentMethod: no such payment method";
            return Err(Denial::unprocessable(unknown).into());
        }
        Ok(())
    }

    /// Stores it; `None` while there are as many as may be. The caller holds the catalogue's
    /// counter.
    ///
    /// # Errors
    /// 422 for an end that is not after the start, or not to come.
    async fn insert(&self, conn: &mut Connection, id: Uuid, actor: &str) -> Result<Option<Window>> {
        sqlx::query_as!(
            Window,
            r#"
            insert into maintenance_window (window_id, pair, payment_method, starts_at, ends_at,
                reason, created_by, has_begun)
            select $1, $2, $3, greatest($4::timestamptz, rampart_now()), $5, $6, $7,
                coalesce($4::timestamptz <= rampart_now(), true)
            where (select count(*) from maintenance_window
                where not has_ended and ends_at > rampart_now()) < $8::bigint
            returning window_id as id, pair, payment_method, starts_at, ends_at, reason, created_by,
                created_at,
                case when starts_at <= rampart_now() then 'running' else 'upcoming' end as "status!"
            "#,
            id,
            self.pair,
            self.payment_method,
            self.starts_at,
            self.ends_at,
            self.reason,
            actor,
            OPEN_MAX,
        )
        .fetch_optional(conn)
        .await
        .map_err(|error| match error.as_database_error().and_then(|e| e.constraint()) {
            Some("maintenance_window_ends_at_check") => {
                Denial::unprocessable("endsAt: after startsAt, and to come").into()
            }
            _ => Error::from(error),
        })
    }
}

/// A maintenance window.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "MaintenanceWindow")]
#[serde(rename_all = "camelCase")]
pub struct Window {
    /// The window's id.
    id: Uuid,
    /// Status when it was read.
    #[schemars(extend("enum" = ["upcoming", "running", "past"]))]
    status: String,
    /// The pair that is closed; null for one of a payment method.
    pair: Option<String>,
    /// The payment method that is not offered; null for one of a pair.
    payment_method: Option<String>,
    /// Its start.
    starts_at: DateTime<Utc>,
    /// Its end.
    ends_at: DateTime<Utc>,
    /// The operator's reason.
    reason: String,
    /// The operator who made it.
    created_by: String,
    /// When it was made.
    created_at: DateTime<Utc>,
}

/// `DELETE /admin/v1/maintenance-windows/{id}`
pub struct EndMaintenanceWindow;

impl Endpoint for EndMaintenanceWindow {
    const METHOD: Method = Method::DELETE;
    const PATH: &'static str = "/admin/v1/maintenance-windows/{id}";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::CONFLICT];
    const ROLES: &'static [Role] = &[Role::Treasury];
    const DOC: Doc = Doc {
        summary: "End or withdraw a maintenance window",
        details: "A running one ends now; an upcoming one is withdrawn, and no longer listed. 409 \
                  for one that is over.",
        path: &[required("id", Kind::Format("uuid"), "The window's id.")],
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Uuid;
    type Response = NoContent;

    fn read(input: &Input, _: &Operator) -> Result<Uuid> {
        input.param("id").parse().map_err(|_| Denial::not_found("maintenance window").into())
    }

    async fn call(core: &Core, operator: Operator, id: Uuid) -> Result<NoContent> {
        let mut tx = core.db.begin().await?;
        let held = sqlx::query!(
            r#"
            select coalesce(pair, payment_method) as "target!",
                has_begun or starts_at <= rampart_now() as "has_begun!",
                has_ended or ends_at <= rampart_now() as "has_ended!"
            from maintenance_window where window_id = $1 for update
            "#,
            id,
        )
        .fetch_optional(&mut *tx)
        .await?
        .ok_or_else(|| Denial::not_found("maintenance window"))?;
        if held.has_ended {
            return Err(Denial::conflict("the window is over").into());
        }
        let action = if held.has_begun {
            // The end is after the start, even of one that was made at this very moment.
            sqlx::query!(
                "update maintenance_window set has_begun = true, has_ended = true, \
                     ends_at = greatest(rampart_now(), starts_at + interval '1 microsecond') \
                 where window_id = $1",
                id,
            )
            .execute(&mut *tx)
            .await?;
            "maintenance-window.end"
        } else {
            sqlx::query!("delete from maintenance_window where window_id = $1", id)
                .execute(&mut *tx)
                .await?;
            "maintenance-window.withdraw"
        };
        publish(core, tx, &operator, action, &held.target, json!({ "id": id })).await?;
        Ok(NoContent)
    }
}
