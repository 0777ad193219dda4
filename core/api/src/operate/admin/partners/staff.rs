//! `GET` and `POST /admin/v1/partners/{slug}/staff`, `DELETE …/{id}`

use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::{SLUG, find};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Kind, Shape, required};
use crate::endpoint::{Body, Created, Endpoint, NoContent};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::operate::admin::operator::Operator;
use crate::operate::admin::page::{AFTER, Page, Part, limit};
use crate::partners::staff::invitation::{Invited, invite};
use crate::partners::staff::{STAFF_MAX, StaffMember, StaffRole, list, remove};
use crate::platform::error::{Denial, Error, Result};
use rampart_types::{EmailAddress, StaffId};

/// `GET /admin/v1/partners/{slug}/staff`
pub struct ListStaff;

impl Endpoint for ListStaff {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/partners/{slug}/staff";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND];
    const ROLES: &'static [Role] = &[Role::Support, Role::Platform];
    const READ_AUDIT: Option<&'static str> = Some("staff.read");
    const DOC: Doc = Doc {
        summary: "List a partner's staff",
        details: "The people who may sign in to the portal, and those who are invited, oldest first.",
        path: &[SLUG],
        query: &[AFTER, limit(STAFF_MAX)],
        answer: r#"[{"id": "0199a000-0000-7000-8000-00000000000a", "email": "ada@acme.example",
            "role": "owner", "joined": true, "secondFactor": false,
            "createdAt": "2026-03-01T12:00:00Z"}]"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = (String, Part);
    type Response = Page<StaffMember>;

    fn read(input: &Input, _: &Operator) -> Result<(String, Part)> {
        Ok((input.param("slug").to_owned(), Part::read(input, STAFF_MAX)?))
    }

    async fn call(
        core: &Core,
        _: Operator,
        (slug, part): (String, Part),
    ) -> Result<Page<StaffMember>> {
        let (client, _) = find(core, &slug).await?;
        let mut conn = core.db.acquire().await?;
        part.of(list(&mut conn, core, client).await?, |member| member.id.to_string())
    }
}

/// `POST /admin/v1/partners/{slug}/staff`
pub struct InviteStaff;

impl Endpoint for InviteStaff {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/admin/v1/partners/{slug}/staff";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::CONFLICT];
    const ROLES: &'static [Role] = &[Role::Platform];
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Invite somebody to a partner's staff",
        details: "A link is mailed to the address, by which its reader chooses a password for the \
                  portal within three days. Who has not joined yet can be invited again: earlier \
                  links are void then. A partner has at most 100.",
        path: &[SLUG],
        body: Shape::of::<Invitation>(),
        request: r#"{"email": "ada@acme.example", "role": "owner"}"#,
        answer: r#"{"id": "0199a000-0000-7000-8000-00000000000a"}"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = (String, EmailAddress, StaffRole);
    type Response = Created<InvitedStaff>;

    fn read(input: &Input, _: &Operator) -> Result<(String, EmailAddress, StaffRole)> {
        let Invitation { email, role } = strict::body(input)?;
        let email = email.parse();
        let email = email.map_err(|_| Denial::unprocessable("email: not an e-mail address"))?;
        Ok((input.param("slug").to_owned(), email, role))
    }

    async fn call(
        core: &Core,
        operator: Operator,
        (slug, email, role): (String, EmailAddress, StaffRole),
    ) -> Result<Created<InvitedStaff>> {
        let (client, _) = find(core, &slug).await?;
        // What was just created is in no snapshot of another edge yet.
        core.refresh().await?;
        let snapshot = core.snapshots.current();
        let tenant = snapshot.tenants.get(&client);
        let tenant = tenant.ok_or_else(|| Error::invariant("read the partner of an invitation"))?;
        let mut tx = core.db.begin().await?;
        let id = match invite(&mut tx, core, tenant, &email, role).await? {
            Invited::Sent(id) => id,
            Invited::Joined => {
                return Err(Denial::conflict("the address is of a member already").into());
            }
            Invited::Full => {
                return Err(Denial::conflict("the partner has 100 people already").into());
            }
        };
        let detail = json!({"staffId": id, "role": role});
        operator.record(&mut tx, core, "staff.invite", &slug, detail).await?;
        tx.commit().await?;
        Ok(Created(InvitedStaff { id }))
    }
}

/// A person to be invited.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "StaffInvitation")]
#[serde(deny_unknown_fields)]
struct Invitation {
    /// Address that the link is mailed to.
    #[schemars(extend("format" = "email"))]
    email: String,
    role: StaffRole,
}

/// Somebody who was invited.
#[derive(Debug, JsonSchema, Serialize)]
pub struct InvitedStaff {
    /// The staff member's id, which its removal names.
    id: StaffId,
}

/// `DELETE /admin/v1/partners/{slug}/staff/{id}`
pub struct RemoveStaff;

impl Endpoint for RemoveStaff {
    const METHOD: Method = Method::DELETE;
    const PATH: &'static str = "/admin/v1/partners/{slug}/staff/{id}";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND];
    const ROLES: &'static [Role] = &[Role::Platform];
    const DOC: Doc = Doc {
        summary: "Remove somebody from a partner's staff",
        details: "Sessions and links end at once, on every edge.",
        path: &[SLUG, required("id", Kind::Format("uuid"), "The person's id.")],
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = (String, String);
    type Response = NoContent;

    fn read(input: &Input, _: &Operator) -> Result<(String, String)> {
        Ok((input.param("slug").to_owned(), input.param("id").to_owned()))
    }

    async fn call(
        core: &Core,
        operator: Operator,
        (slug, id): (String, String),
    ) -> Result<NoContent> {
        let (client, _) = find(core, &slug).await?;
        let unknown = || Denial::not_found("staff member");
        let id = StaffId::from(id.parse::<Uuid>().map_err(|_| unknown())?);
        let mut tx = core.db.begin().await?;
        if !remove(&mut tx, client, id, None).await? {
            return Err(unknown().into());
        }
        let detail = json!({ "staffId": id });
        operator.record(&mut tx, core, "staff.remove", &slug, detail).await?;
        tx.commit().await?;
        Ok(NoContent)
    }
}
