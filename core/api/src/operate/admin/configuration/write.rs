//! Writing a configuration: each subject's members before and after are read from the database, which
//! alone knows how it stores them.

use std::collections::BTreeMap;
use std::sync::Arc;

use rampart_plugins::contract::PolicyKind;
use rust_decimal::Decimal;
use serde_json::{Map, Value, json};

use super::difference::Difference;
use super::document::{Document, PartnerEntry, at};
use crate::Core;
use crate::operate::admin::market::pairs::ChangePair;
use crate::operate::admin::market::payment_methods::ChangeMethod;
use crate::operate::admin::market::prices::NewPrice;
use crate::operate::admin::partners::read::Partner;
use crate::operate::admin::routes::Routes;
use crate::operate::going_live;
use crate::platform::audit::{self, Entry};
use crate::platform::db::Connection;
use crate::platform::error::{Denial, Error, Result};
use crate::platform::revision;
use crate::policies::lifecycle::{self, Target};
use crate::tenancy::tenants::Mode;
use crate::tenancy::tenants::create::NewTenant;
use rampart_types::{ClientId, JsonDecimal, PairCode};

/// Reason in the history of a policy.
const REASON: &str = "applied by configuration";

impl Document {
    /// Writes it; returns what has changed. Only the caller's commit makes it last.
    ///
    /// # Errors
    /// 409 or 422 with the first subject that cannot be as the document says.
    pub(super) async fn write(
        &self,
        core: &Core,
        conn: &mut Connection,
        actor: &str,
    ) -> Result<Vec<Difference>> {
        // Of two that are applied at once, the second begins when the first has ended.
        sqlx::query!("lock table applied_configuration in share row exclusive mode")
            .execute(&mut *conn)
            .await?;
        self.lock_partners(conn).await?;
        let (mut changes, mut catalogue, mut going_live) = (Vec::new(), Vec::new(), Vec::new());
        for partner in &self.partners {
            let subject = format!("partners.{}", partner.slug);
            let changed = partner.write(core, conn, actor).await;
            let changed = changed.map_err(|error| at(&subject, error))?;
            if changed.iter().any(|one| one.member == "mode" && one.to == Mode::Live.as_str()) {
                going_live.push(&*partner.slug);
            }
            changes.extend(changed);
        }
        self.lock_pairs(conn).await?;
        for (code, change) in &self.pairs {
            let subject = format!("pairs.{code}");
            let changed = write_pair(conn, &subject, *code, change).await;
            catalogue.extend(changed.map_err(|error| at(&subject, error))?);
        }
        for (code, change) in &self.payment_methods {
            let subject = format!("paymentMethods.{code}");
            let changed = write_method(conn, &subject, code, change).await;
            catalogue.extend(changed.map_err(|error| at(&subject, error))?);
        }
        for (code, new) in &self.prices {
            let subject = format!("prices.{code}");
            let changed = write_price(conn, &subject, *code, new).await;
            catalogue.extend(changed.map_err(|error| at(&subject, error))?);
        }
        if let Some(routes) = &self.routes {
            catalogue.extend(write_routes(core, conn, routes).await?);
        }
        check_live(core, conn, &going_live).await?;
        if !catalogue.is_empty() {
            revision::catalogue_changed(conn).await?;
        }
        changes.append(&mut catalogue);
        if !changes.is_empty() {
            record(core, conn, actor, &changes).await?;
        }
        Ok(changes)
    }

    /// Locks its partners, in the order in which others lock them: before any revision is raised.
    async fn lock_partners(&self, conn: &mut Connection) -> Result<()> {
        let slugs: Vec<_> = self.partners.iter().map(|partner| partner.slug.clone()).collect();
        sqlx::query_scalar!(
            "select client_id from client where slug = any($1) order by client_id \
             for no key update",
            &slugs,
        )
        .fetch_all(conn)
        .await?;
        Ok(())
    }

    /// Locks its pairs and those of its prices, in the order in which others lock them: before any
    /// price is locked. Not before its partners are written, which may take long: the price feed
    /// holds every pair at once, and waits meanwhile.
    async fn lock_pairs(&self, conn: &mut Connection) -> Result<()> {
        let pairs = self.pairs.iter().map(|(code, _)| code.to_string());
        let pairs: Vec<_> =
            pairs.chain(self.prices.iter().map(|(code, _)| code.to_string())).collect();
        sqlx::query_scalar!(
            "select pair from currency_pair where pair = any($1) order by pair for no key update",
            &pairs,
        )
        .fetch_all(conn)
        .await?;
        Ok(())
    }
}

/// Checks that nothing is missing for the first order of these partners, which go live, by what the
/// document has written too: it may have the routes and prices that they need.
///
/// # Errors
/// 409 with the first one that lacks something.
async fn check_live(core: &Core, conn: &mut Connection, slugs: &[&str]) -> Result<()> {
    if slugs.is_empty() {
        return Ok(());
    }
    let known = Arc::clone(&core.snapshots.current().catalogue);
    let catalogue = known.uncommitted(conn, &core.settings.prices).await?;
    for slug in slugs {
        let missing = going_live::missing_in(core, &catalogue, Some(slug));
        if !missing.is_empty() {
            let reason = format!("partners.{slug}: a live partner needs: {}", missing.join(", "));
            return Err(Denial::conflict(reason).into());
        }
    }
    Ok(())
}

/// One entry of the audit for each subject.
async fn record(
    core: &Core,
    conn: &mut Connection,
    actor: &str,
    changes: &[Difference],
) -> Result<()> {
    for changes in changes.chunk_by(|a, b| a.subject == b.subject) {
        let Some(Difference { subject, .. }) = changes.first() else { continue };
        let values = changes.iter().map(|change| {
            // The audit names nobody, as a `mailto:` URL may.
            let names_somebody = matches!(&*change.member, "contactEmail" | "branding.supportUrl");
            let is_hidden = names_somebody && change.to.is_string();
            (change.member.clone(), if is_hidden { json!("set") } else { change.to.clone() })
        });
        let detail = Value::Object(values.collect());
        let entry = Entry { actor, action: "configuration.apply", target: subject, detail };
        audit::record(conn, core, entry).await?;
    }
    Ok(())
}

impl PartnerEntry {
    async fn write(
        &self,
        core: &Core,
        conn: &mut Connection,
        actor: &str,
    ) -> Result<Vec<Difference>> {
        let subject = format!("partners.{}", self.slug);
        let stored = sqlx::query!(
            "select client_id, mode, guest_orders_allowed from client \
             where slug = $1 and slug <> 'house' for no key update",
            self.slug,
        )
        .fetch_optional(&mut *conn)
        .await?;
        let mut before = match &stored {
            Some(_) => json!(Partner::find(conn, &self.slug).await?),
            None => Value::Null,
        };
        let is_live = stored.as_ref().is_some_and(|row| row.mode == Mode::Live.as_str());
        let guests_unset = stored.as_ref().is_none_or(|row| row.guest_orders_allowed.is_none());
        if stored.is_some() && guests_unset && self.change.mode == Some(Mode::Live) {
            // What a test partner may by default is a change of a live one.
            before["guestOrders"]["allowed"] = json!(false);
        }
        if is_live && self.change.mode == Some(Mode::Test) {
            return Err(going_live::stays_live().into());
        }
        let client = match &stored {
            Some(row) => row.client_id.into(),
            None => self.create(core, conn).await?,
        };
        if self.change.waives_signatures() && before["policySignatureRequired"] == true {
            let reason = "policySignatureRequired: ends by a signed statement alone";
            return Err(Denial::conflict(reason).into());
        }
        self.change.end_what_is_left_out(conn, &self.slug).await?;
        self.change.write(conn, &self.slug, &self.branding).await?;
        if guests_unset {
            leave_guests_unset(conn, &self.slug).await?;
        }
        let mut after = json!(Partner::find(conn, &self.slug).await?);
        if stored.is_none() {
            // What nobody has decided is no change.
            for name in ["id", "createdAt", "username", "apiKeys"] {
                after[name].take();
            }
        }
        let mut changes = Difference::between(&subject, &before, &after);
        for (kind, digest) in &self.policies {
            let target = Target {
                actor,
                slug: &self.slug,
                client,
                kind: *kind,
                reason: Some(REASON),
                signed: None,
                // A document is applied by two persons, whose approval is used up for all of it.
                is_approved: true,
                approval: None,
            };
            changes.extend(activate(core, conn, target, &subject, digest).await?);
        }
        Ok(changes)
    }

    /// Creates the partner. Nobody sees its credentials: they are issued and rotated afterwards.
    async fn create(&self, core: &Core, conn: &mut Connection) -> Result<ClientId> {
        let (slug, mode) = (self.slug.clone(), self.change.mode.unwrap_or(Mode::Test));
        let name = self.name.clone().unwrap_or_else(|| slug.clone());
        let tenant = NewTenant::generate(core, slug, name, mode).await?;
        tenant.insert(conn, core.clock.now()).await.map_err(|error| {
            match error.as_database_error().and_then(|e| e.constraint()) {
                Some("client_slug_key" | "client_username_key") => {
                    Denial::conflict("slug is taken").into()
                }
                _ => Error::from(error),
            }
        })?;
        Ok(tenant.id)
    }
}

/// Takes back a permission of guests' orders that is the default of the partner's mode, where none was
/// stored before: a document that repeats the default, as an export of it does, decides nothing for a
/// partner that goes live later.
async fn leave_guests_unset(conn: &mut Connection, slug: &str) -> Result<()> {
    sqlx::query!(
        "update client set guest_orders_allowed = null \
         where slug = $1 and guest_orders_allowed = (mode = 'test')",
        slug,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Activates the version of a policy that has this digest, unless it is the active one.
///
/// # Errors
/// 409 when its versions have different settings: whoever agrees to a digest has seen none of them.
async fn activate(
    core: &Core,
    conn: &mut Connection,
    target: Target<'_>,
    subject: &str,
    digest: &str,
) -> Result<Option<Difference>> {
    let (client, kind) = (target.client.uuid(), target.kind.as_str());
    let active = sqlx::query_scalar!(
        "select digest from policy_version where client_id = $1 and kind = $2 and active",
        client,
        kind,
    );
    let active = active.fetch_optional(&mut *conn).await?;
    if active.as_deref() == Some(digest) {
        return Ok(None);
    }
    let found = sqlx::query!(
        r#"
        select max(version) as version, count(distinct (config, fail_closed)) as "settings!"
        from policy_version where client_id = $1 and kind = $2 and digest = $3
        "#,
        client,
        kind,
        digest,
    );
    let found = found.fetch_one(&mut *conn).await?;
    let version = found.version.ok_or_else(|| {
        let reason = format!("policies.{kind}: no version has this digest: upload it first");
        Denial::unprocessable(reason)
    })?;
    if found.settings > 1 {
        let reason =
            "versions with this digest have different settings: activate one by its number";
        return Err(Denial::conflict(format!("policies.{kind}: {reason}")).into());
    }
    lifecycle::activate_in(core, conn, target, version).await?;
    Ok(Some(Difference {
        subject: subject.to_owned(),
        member: format!("policies.{kind}"),
        from: active.into(),
        to: digest.into(),
    }))
}

async fn write_pair(
    conn: &mut Connection,
    subject: &str,
    code: PairCode,
    change: &ChangePair,
) -> Result<Vec<Difference>> {
    // A change of nothing holds the row and reads it.
    let before = json!(ChangePair::default().write(conn, code).await?);
    let after = json!(change.write(conn, code).await?);
    Ok(Difference::between(subject, &before, &after))
}

async fn write_method(
    conn: &mut Connection,
    subject: &str,
    code: &str,
    change: &ChangeMethod,
) -> Result<Vec<Difference>> {
    let before = json!(ChangeMethod::default().write(conn, code).await?);
    let after = json!(change.write(conn, code).await?);
    Ok(Difference::between(subject, &before, &after))
}

async fn write_price(
    conn: &mut Connection,
    subject: &str,
    code: PairCode,
    new: &NewPrice,
) -> Result<Vec<Difference>> {
    let stored = sqlx::query!(
        "select price, max_age_seconds from price where pair = $1 and fixed for no key update",
        code.to_string(),
    );
    let stored = stored.fetch_optional(&mut *conn).await?;
    let before = stored.map(|row| terms_of_price(row.price, row.max_age_seconds));
    let after = terms_of_price(new.price.0, new.max_age_seconds);
    let before = before.map_or(Value::Null, Value::Object);
    let changes = Difference::between(subject, &before, &Value::Object(after));
    // The same price again would be a newer one, which nobody has looked at.
    if !changes.is_empty() {
        new.write(conn, code).await?;
    }
    Ok(changes)
}

fn terms_of_price(price: Decimal, max_age_seconds: Option<i32>) -> Map<String, Value> {
    let mut members = Map::new();
    members.insert("price".to_owned(), json!(JsonDecimal(price)));
    members.insert("maxAgeSeconds".to_owned(), json!(max_age_seconds));
    members
}

async fn write_routes(
    core: &Core,
    conn: &mut Connection,
    routes: &Routes,
) -> Result<Vec<Difference>> {
    let mut routes = routes.clone();
    routes.resolve(core)?;
    let (before, after) = (json!(Routes::stored(conn).await?), json!(routes));
    let changes = Difference::between("routes", &before, &after);
    if !changes.is_empty() {
        routes.write(conn).await?;
    }
    Ok(changes)
}

/// Prices that operators have set, by pair.
pub(super) async fn fixed_prices(
    conn: &mut Connection,
) -> Result<BTreeMap<String, Map<String, Value>>> {
    let rows = sqlx::query!("select pair, price, max_age_seconds from price where fixed");
    let rows = rows.fetch_all(conn).await?.into_iter();
    Ok(rows.map(|row| (row.pair, terms_of_price(row.price, row.max_age_seconds))).collect())
}

/// The active policies: partner, kind, digest.
pub(super) async fn active_policies(
    conn: &mut Connection,
) -> Result<Vec<(String, &'static str, String)>> {
    let rows = sqlx::query!(
        "select c.slug, p.kind, p.digest from policy_version p \
         join client c on c.client_id = p.client_id where p.active"
    );
    let known =
        rows.fetch_all(conn).await?.into_iter().filter_map(|row| {
            Some((row.slug, PolicyKind::from_name(&row.kind)?.as_str(), row.digest))
        });
    Ok(known.collect())
}
