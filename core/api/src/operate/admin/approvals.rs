//! Calls that need two persons: one operator makes the call, another one agrees, and the first makes
//! it again. The break-glass owner needs nobody.

pub mod decide;
mod dry_run;
pub mod list;
pub(super) mod withdraw;

use std::borrow::Cow;
use std::iter;

use futures::future::BoxFuture;
use http::{Method, StatusCode};
use ring::digest;
use rust_decimal::Decimal;
use serde_json::{Value, json};
use uuid::Uuid;

use self::dry_run::DryRun;
use super::operator::Operator;
use crate::Core;
use crate::auth::approval::GrantedApproval;
use crate::auth::roles::Role;
use crate::endpoint::{Endpoint, Route};
use crate::http::reply::Reply;
use crate::http::request::{Head, Input};
use crate::money::payments::store::currency_of;
use crate::platform::db::Connection;
use crate::platform::error::{Denial, Error, Result};
use crate::policies::manifest::digest_hex;

/// Lifetime of an approval from the first call to the last, in seconds.
const LIFETIME_SECONDS: i32 = 24 * 3_600;
/// Time that an ended approval is listed, in days; the audit keeps it for good.
const LISTED_DAYS: i32 = 30;
/// Most open approvals of one operator.
const OPEN_MAX: i64 = 100;

/// The form in which a call waits.
#[derive(Clone, Debug)]
pub(super) struct Held<'a> {
    method: Method,
    /// The endpoint's path.
    route: &'static str,
    path: &'a str,
    roles: &'static [Role],
    dry_run: Option<DryRun<'a>>,
}

impl<'a> Held<'a> {
    /// A call of an endpoint. The second person has each of `roles`, besides one that the endpoint
    /// declares.
    pub(super) fn of<E: Endpoint<Caller = Operator>>(
        input: &'a Input,
        roles: &'static [Role],
    ) -> Self {
        let (path, dry_run) = (&*input.head.path, DryRun::of::<E>(input));
        Self { method: E::METHOD, route: E::PATH, path, roles, dry_run }
    }

    /// The call under a path of the same meaning: a path is kept for good, in the audit, and shown to
    /// everybody, so that it must say nothing of a person.
    pub(super) fn at(self, path: &'a str) -> Self {
        Self { path, ..self }
    }

    /// The name of the call in the audit.
    fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

/// Holds a call back until a second operator has agreed. Gives the answer to a call that waits, and
/// nothing for one that may go on: its transaction uses the approval up ([`Operator::record`]), so that
/// one that fails leaves it, and of two at once one is carried out.
///
/// # Errors
/// 403 in a session of the version before, which has no identity; 409 when too many calls of this
/// operator wait, or another operator of the same name waits with this one; those of the call itself,
/// about which nobody is asked then.
pub(super) fn hold<'a, E: Endpoint<Caller = Operator>>(
    core: &'a Core,
    input: &'a Input,
    operator: &'a Operator,
) -> BoxFuture<'a, Result<Option<Reply>>> {
    Box::pin(hold_as(core, input, Held::of::<E>(input, &[]), operator))
}

/// As [`hold`], for a call that waits in this form, and is shown with this input.
///
/// # Errors
/// Those of [`hold`].
pub(super) async fn hold_as(
    core: &Core,
    input: &Input,
    call: Held<'_>,
    operator: &Operator,
) -> Result<Option<Reply>> {
    if operator.is_break_glass() {
        return Ok(None);
    }
    let identity = operator.known_identity()?;
    let own = identities(core, Some(identity.clone())).await?;
    if let Some(approval) = granted(core, input, &call, operator, &own).await? {
        operator.approve(approval);
        return Ok(None);
    }
    if let Some(dry_run) = call.dry_run {
        dry_run.run(core, operator).await?;
    }
    let id = open(core, input, &call, operator, &identity, &own).await?;
    let body = json!({
        "approval": id,
        "state": "pending",
        "message": "another operator must grant this approval; then make the same call again",
    });
    let body = body.to_string().into();
    Ok(Some(Reply::with_body(StatusCode::ACCEPTED, "application/json", body)))
}

/// Refuses a call that needs an approval by what is stored now, and has none.
///
/// # Errors
/// 409 without one: what is stored has changed since [`hold`].
pub(super) fn require(operator: &Operator) -> Result<()> {
    if operator.is_approved() {
        return Ok(());
    }
    let reason = "it takes two persons now, for something has changed meanwhile: make the same call \
                  again, and another operator is asked";
    Err(Denial::conflict(reason).into())
}

/// True for an amount that one operator must not report alone.
pub(super) fn exceeds_alone(core: &Core, amount: Decimal) -> bool {
    amount > alone_max(core)
}

/// As [`exceeds_alone`], for an amount of this currency or asset. Coins always are too much: their
/// worth is not known here.
pub(super) fn exceeds_alone_in(core: &Core, amount: Decimal, currency: &str) -> bool {
    currency_of(core, currency).1 || exceeds_alone(core, amount)
}

/// The largest amount that one operator reports alone.
pub(super) fn alone_max(core: &Core) -> Decimal {
    Decimal::from(core.settings.operators.payment_alone_max)
}

/// All identities of the person who has this one. An account at the provider and the row of an
/// operator are one person's once the account has come under the name of the row.
///
/// # Errors
/// When the database cannot be read.
pub(super) async fn identities(core: &Core, identity: Option<String>) -> Result<Vec<String>> {
    let Some(identity) = identity else { return Ok(Vec::new()) };
    let all = sqlx::query_scalar!(
        r#"
        select $1::text as "identity!"
        union select i.identity from operator o join operator_identity i using (name)
            where o.operator_id::text = $1
        union select o.operator_id::text from operator o join operator_identity i using (name)
            where i.identity = $1
        "#,
        identity,
    )
    .fetch_all(&core.db)
    .await?;
    Ok(all)
}

/// The approval of this very call, if another operator has granted it.
async fn granted(
    core: &Core,
    input: &Input,
    held: &Held<'_>,
    operator: &Operator,
    own: &[String],
) -> Result<Option<GrantedApproval>> {
    let granted = sqlx::query_scalar!(
        "select approval_id from approval \
         where (requested_by_identity = any ($3) \
                 or requested_by_identity is null and requested_by = $1) \
             and digest = $2 and granted_by is not null \
             and refused_by is null and used_at is null and expires_at > now() \
         order by approval_id limit 1",
        operator.actor(),
        &digest_of_call(input, held)[..],
        own,
    )
    .fetch_optional(&core.db)
    .await?;
    Ok(granted.map(|id| GrantedApproval::new(id, held.name())))
}

/// The open approval of this call, a new one if there is none.
async fn open(
    core: &Core,
    input: &Input,
    held: &Held<'_>,
    operator: &Operator,
    identity: &str,
    own: &[String],
) -> Result<Uuid> {
    let (id, digest) = (core.clock.uuid()?, digest_of_call(input, held));
    let roles: Vec<_> = held.roles.iter().map(|role| role.as_str().to_owned()).collect();
    let sealed = core.keys.seal(&core.clock, &context(id), &shown(input))?;
    let mut tx = core.db.begin().await?;
    let opened = sqlx::query_scalar!(
        "insert into approval as a (approval_id, digest, method, route, path, sealed_body, \
             requested_by, requested_by_identity, approver_roles, requested_at, expires_at) \
         select $1, $2, $3, $4, $5, $6, $7, $10, $12::text[], now(), \
             now() + make_interval(secs => $8::int) \
         from (select count(*) as open, bool_or(digest = $2) is true as is_open from approval \
             where (requested_by_identity = any ($11) \
                     or requested_by_identity is null and requested_by = $7) \
                 and used_at is null and refused_by is null and expires_at > now()) waiting \
         where waiting.open < $9 and not waiting.is_open \
         on conflict (requested_by, digest) where used_at is null and refused_by is null \
         do update set approval_id = excluded.approval_id, sealed_body = excluded.sealed_body, \
             requested_by_identity = excluded.requested_by_identity, \
             approver_roles = excluded.approver_roles, \
             requested_at = excluded.requested_at, expires_at = excluded.expires_at, \
             granted_by = null, granted_by_identity = null, decided_at = null \
         where a.expires_at <= now() \
         returning approval_id",
        id,
        &digest[..],
        held.method.as_str(),
        held.route,
        held.path,
        sealed,
        operator.actor(),
        LIFETIME_SECONDS,
        OPEN_MAX,
        identity,
        own,
        &roles,
    )
    .fetch_optional(&mut *tx)
    .await?;
    if let Some(id) = opened {
        let detail = json!({ "call": held.name() });
        record(&mut tx, core, operator, "approval.request", id, detail).await?;
        tx.commit().await?;
        return Ok(id);
    }
    tx.rollback().await?;
    opened_before(core, operator, own, &digest).await
}

/// The open approval of a call that this operator has made before, by whatever name.
///
/// # Errors
/// 409 without one: too many calls of theirs wait, or another operator whom the provider gives the
/// same name waits with this very call.
async fn opened_before(
    core: &Core,
    operator: &Operator,
    own: &[String],
    digest: &[u8],
) -> Result<Uuid> {
    let open = sqlx::query!(
        r#"
        select approval_id, coalesce(requested_by_identity = any ($2), true) as "is_own!"
        from approval where (requested_by = $1 or requested_by_identity = any ($2))
            and digest = $3 and used_at is null and refused_by is null and expires_at > now()
        order by 2 desc limit 1
        "#,
        operator.actor(),
        own,
        digest,
    )
    .fetch_optional(&core.db)
    .await?;
    let reason = match open {
        Some(open) if open.is_own => return Ok(open.approval_id),
        Some(_) => "another operator of your name waits with this call: grant theirs".to_owned(),
        None => format!("{OPEN_MAX} calls of yours wait for a second person already"),
    };
    Err(Denial::conflict(reason).into())
}

/// The body as the second operator sees it. One that is no JSON, a policy's component, is shown by
/// its digest, with the query, which has the settings that come with it.
fn shown(input: &Input) -> Cow<'_, [u8]> {
    if input.document.is_object() {
        return Cow::Borrowed(&input.body);
    }
    let members = json!({
        "sha256": digest_hex(&input.body),
        "size": input.body.len(),
        "query": input.head.query,
    });
    Cow::Owned(members.to_string().into_bytes())
}

/// SHA-256 of everything that says what the call does, and of the roles that its second person needs by
/// what is stored now.
fn digest_of_call(input: &Input, held: &Held<'_>) -> [u8; 32] {
    let Head { method, query, .. } = &input.head;
    let mut context = digest::Context::new(&digest::SHA256);
    let parts = [method.as_str(), held.path, query.as_deref().unwrap_or_default()];
    let roles = held.roles.iter().map(|role| role.as_str().as_bytes());
    for part in parts.map(str::as_bytes).into_iter().chain([&*unsigned(input)]).chain(roles) {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part);
    }
    let mut bytes = [0; 32];
    bytes.copy_from_slice(context.finish().as_ref());
    bytes
}

/// The members of a call's body, however it spells and orders them, without the signature, which states
/// its time and is good for one call and 15 minutes: the call that comes again once it is granted has
/// another one, verified by itself. The bytes of a body that is no object.
fn unsigned(input: &Input) -> Cow<'_, [u8]> {
    let Some(members) = input.document.as_object() else { return Cow::Borrowed(&input.body) };
    let mut members = members.clone();
    members.remove("signed");
    let mut document = Value::Object(members);
    document.sort_all_objects();
    Cow::Owned(document.to_string().into_bytes())
}

/// The context that a body is sealed for.
fn context(approval: Uuid) -> String {
    format!("approval/{approval}")
}

/// Lets pass who has the roles that decide about a call, by its route and the roles of what it changes.
///
/// # Errors
/// 403, which names the roles.
fn check_approver(operator: &Operator, route: Option<&Route>, roles: &[String]) -> Result<()> {
    approvers(route, roles).iter().try_for_each(|roles| operator.check(roles))
}

/// Lists of roles, of each of which the second person has one: those that the route declares, and those of
/// what the call changes. A role that is not known here is an owner's.
fn approvers(route: Option<&Route>, roles: &[String]) -> Vec<Vec<Role>> {
    let declared: &[Role] = route.map_or(&[], |route| route.approvers);
    let changed = roles.iter().map(|role| vec![Role::from_name(role).unwrap_or(Role::Owner)]);
    iter::once(declared.to_vec()).chain(changed).collect()
}

/// The row of the table of endpoints that a stored call is of; `None` after it was taken away.
fn route_of<'a>(core: &'a Core, method: &str, path: &str) -> Option<&'a Route> {
    let mut routes = core.apis.operators.endpoints.iter();
    routes.find(|route| route.method == *method && route.path == path)
}

async fn record(
    conn: &mut Connection,
    core: &Core,
    operator: &Operator,
    action: &'static str,
    id: Uuid,
    detail: Value,
) -> Result<(), Error> {
    let target = id.to_string();
    operator.record(conn, core, action, &target, detail).await
}

/// Deletes approvals that ended long ago, with the bodies of their calls: one run of a worker.
///
/// # Errors
/// When the database cannot be written; the next run continues.
pub async fn delete_old_approvals(core: &Core) -> Result<()> {
    sqlx::query!(
        "delete from approval where expires_at < now() - make_interval(days => $1::int)",
        LISTED_DAYS,
    )
    .execute(&core.db)
    .await?;
    Ok(())
}
