//! The statements of a search for users: an index leads to candidates for each criterion, and only
//! those that meet all of them are opened.

use std::collections::BTreeSet;

use uuid::Uuid;

use super::{Found, Search, mask};
use crate::Core;
use crate::auth::user_credentials::identifier_digest;
use crate::platform::error::Result;
use crate::users::personal_data::{self, PersonalData, SealedPersonalData, email_index};
use crate::users::search_index::SearchKey;
use rampart_types::{ClientId, EmailAddress, UserId, UserIdentifier, UserKey};

/// Most users that one criterion leads to: those with the same name.
const CANDIDATES_MAX: i64 = 10_000;

/// Something that every user who is found has.
#[derive(Debug)]
pub(super) enum Criterion {
    /// The e-mail address.
    Email(EmailAddress),
    /// The phone number or the name.
    Key(SearchKey),
    /// An identifier that a partner has for the user.
    Identifier(UserIdentifier),
}

impl Criterion {
    /// The name of its parameter.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Email(_) => "email",
            Self::Key(key) => key.kind(),
            Self::Identifier(_) => "identifier",
        }
    }

    fn digest(&self, core: &Core, client: ClientId) -> Result<Vec<u8>> {
        match self {
            Self::Email(email) => email_index(core, client, email),
            Self::Key(key) => key.digest(core, client),
            Self::Identifier(identifier) => identifier_digest(core, client, identifier),
        }
    }

    /// The users of these clients who meet it, newest first.
    async fn candidates(&self, core: &Core, clients: &[ClientId]) -> Result<Vec<Uuid>> {
        let digests = clients.iter().map(|client| self.digest(core, *client));
        let digests = digests.collect::<Result<Vec<_>>>()?;
        let clients: Vec<Uuid> = clients.iter().map(|client| client.uuid()).collect();
        let found =
            match self {
                Self::Email(_) => sqlx::query_scalar!(
                    "select u.user_id from unnest($1::uuid[], $2::bytea[]) k (client_id, digest) \
                     join end_user u on u.client_id = k.client_id and u.email_index = k.digest \
                     order by u.user_id desc limit $3",
                    &clients,
                    &digests,
                    CANDIDATES_MAX,
                )
                .fetch_all(&core.db)
                .await?,
                Self::Key(key) => sqlx::query_scalar!(
                    "select s.user_id from unnest($1::uuid[], $2::bytea[]) k (client_id, digest) \
                     join user_search s on s.client_id = k.client_id and s.kind = $4 \
                         and s.digest = k.digest \
                     order by s.user_id desc limit $3",
                    &clients,
                    &digests,
                    CANDIDATES_MAX,
                    key.kind(),
                )
                .fetch_all(&core.db)
                .await?,
                Self::Identifier(_) => sqlx::query_scalar!(
                    "select i.user_id from unnest($1::uuid[], $2::bytea[]) k (client_id, digest) \
                     join user_identifier i on i.client_id = k.client_id \
                         and i.identifier_digest = k.digest \
                     order by i.user_id desc limit $3",
                    &clients,
                    &digests,
                    CANDIDATES_MAX,
                )
                .fetch_all(&core.db)
                .await?,
            };
        Ok(found)
    }

    /// True unless the personal data say otherwise.
    fn is_met(&self, personal: &PersonalData) -> bool {
        match self {
            Self::Key(key) => key.is_of(personal),
            Self::Email(_) | Self::Identifier(_) => true,
        }
    }
}

/// The users of a page, newest first, and the last one of it while there are more.
pub(super) async fn find(
    core: &Core,
    search: &Search,
    is_masked: bool,
) -> Result<(Vec<Found>, Option<UserId>)> {
    let mut ids = candidates(core, search).await?;
    let has_more = search.paging.cut(&mut ids);
    let last = ids.last().filter(|_| has_more).map(|id| UserId::from(*id));
    Ok((load(core, search, &ids, is_masked).await?, last))
}

/// The ids of the page, and one more if there is one.
async fn candidates(core: &Core, search: &Search) -> Result<Vec<Uuid>> {
    let after = search.after.map(UserId::uuid);
    let most = search.paging.rows_max();
    if search.criteria.is_empty() {
        let newest = sqlx::query_scalar!(
            "select user_id from end_user \
             where ($1::text is null \
                     or client_id = (select client_id from client where slug = $1)) \
                 and ($2::uuid is null or user_id < $2) \
             order by user_id desc limit $3",
            search.partner,
            after,
            most,
        );
        return Ok(newest.fetch_all(&core.db).await?);
    }
    let snapshot = core.snapshots.current();
    let wanted = |slug: &str| search.partner.as_deref().is_none_or(|partner| partner == slug);
    let clients = snapshot.tenants.iter().filter(|(_, tenant)| wanted(&tenant.slug));
    let clients: Vec<ClientId> = clients.map(|(client, _)| *client).collect();
    let mut meet_all: Option<BTreeSet<Uuid>> = None;
    for criterion in &search.criteria {
        let found = criterion.candidates(core, &clients).await?.into_iter();
        meet_all = Some(match meet_all {
            None => found.collect(),
            Some(before) => found.filter(|id| before.contains(id)).collect(),
        });
    }
    let newest = meet_all.unwrap_or_default().into_iter().rev();
    let newest = newest.filter(|id| after.is_none_or(|after| *id < after));
    Ok(newest.take(usize::try_from(most).unwrap_or(usize::MAX)).collect())
}

async fn load(core: &Core, search: &Search, ids: &[Uuid], is_masked: bool) -> Result<Vec<Found>> {
    let rows = sqlx::query!(
        r#"
        select u.client_id, u.user_id, c.slug, u.personal, u.level, u.identity_status,
            u.disabled_at, u.deleted_at, u.created_at,
            coalesce(k.sealed, nullif(u.sealed_key, '')) as sealed_key
        from end_user u join client c using (client_id)
        left join personal_key k using (client_id, user_id)
        where u.user_id = any ($1) order by u.user_id desc
        "#,
        ids,
    )
    .fetch_all(&core.db)
    .await?;
    let mut users = Vec::with_capacity(rows.len());
    for row in rows {
        let (client, user) = (ClientId::from(row.client_id), UserId::from(row.user_id));
        let sealed = SealedPersonalData {
            key: row.sealed_key.as_deref(),
            personal: row.personal.as_deref(),
        };
        // The search is of all partners: one whose key is gone must not take it from the others.
        let personal = personal_data::read(core, UserKey { client, user }, sealed)
            .inspect_err(|error| tracing::warn!(%error, %user, "a user's data are not opened"))
            .unwrap_or_default();
        // The index may be older than the data, and never decides alone.
        if !search.criteria.iter().all(|criterion| criterion.is_met(&personal)) {
            continue;
        }
        let shown = |text: Option<&str>, mask: fn(&str) -> String| {
            text.map(|text| if is_masked { mask(text) } else { text.to_owned() })
        };
        users.push(Found {
            uuid: user,
            partner: row.slug,
            masked: is_masked,
            email: shown(personal.email.as_ref().map(EmailAddress::as_str), mask::email),
            first_name: shown(personal.first_name.as_deref(), mask::name),
            last_name: shown(personal.last_name.as_deref(), mask::name),
            business_name: shown(personal.business_name.as_deref(), mask::name),
            phone_number: shown(personal.phone_number.as_ref().map(|p| p.as_str()), mask::phone),
            level: row.level,
            identity_status: row.identity_status,
            disabled: row.disabled_at.is_some(),
            deleted: row.deleted_at.is_some(),
            created_at: row.created_at,
        });
    }
    Ok(users)
}
