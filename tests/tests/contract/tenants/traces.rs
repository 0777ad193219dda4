//! Traces of the stored rows by owner: they show whose data a request wrote.

use std::collections::BTreeMap;

use sqlx::{AssertSqlSafe, Row as _};
use uuid::Uuid;

use super::callers::Standing;
use super::resources::Cast;

/// A trace of all rows of a client, and of each of its users: how many there are, and the sum of the
/// transactions that wrote them. A transaction has a higher number than all before it, so whatever
/// is added, removed or written anew, be it with the same values, changes one or the other.
#[derive(PartialEq, Eq)]
pub(super) struct Traces {
    by_owner: BTreeMap<(Uuid, Option<Uuid>), String>,
    acme: Uuid,
    /// Ids of Ann, Bob and Eve.
    users: [Uuid; 3],
}

/// One statement over every table that has a client.
pub(super) async fn statement(db: &sqlx::PgPool) -> String {
    let tables = sqlx::query(
        "select c.table_name::text as name, exists (select from information_schema.columns u \
             where u.table_schema = 'public' and u.table_name = c.table_name \
             and u.column_name = 'user_id') as has_user \
         from information_schema.columns c \
         join information_schema.tables t using (table_schema, table_name) \
         where c.table_schema = 'public' and c.column_name = 'client_id' \
             and t.table_type = 'BASE TABLE' order by 1",
    )
    .fetch_all(db)
    .await
    .unwrap();
    assert!(tables.len() > 20, "{}", tables.len());
    let selects = tables.iter().map(|table| {
        let (name, has_user): (String, bool) = (table.get("name"), table.get("has_user"));
        let user = if has_user { "user_id" } else { "null::uuid" };
        format!("select client_id, {user} as user_id, xmin::text::bigint as writer from {name}")
    });
    let all = selects.collect::<Vec<_>>().join(" union all ");
    format!(
        "select client_id, user_id, concat(count(*), ' by ', sum(writer)) as trace \
         from ({all}) rows group by client_id, user_id"
    )
}

impl Traces {
    pub(super) async fn of(cast: &Cast) -> Self {
        let statement = AssertSqlSafe(cast.traces.clone());
        let rows = sqlx::query(statement).fetch_all(cast.context.db()).await.unwrap();
        let rows = rows.iter().map(|row| {
            let client: Uuid = row.get("client_id");
            ((client, row.get("user_id")), row.get("trace"))
        });
        Self {
            by_owner: rows.collect(),
            acme: cast.acme.id.parse().unwrap(),
            users: cast.uuids.clone().map(|uuid| uuid.parse().unwrap()),
        }
    }

    /// Panics when anything changed of another client, or of another user than the caller's.
    pub(super) fn assert_only_by(&self, before: &Self, standing: &Standing, case: &str) {
        let Standing::For { tenant, user } = standing else { panic!("{case}") };
        let user = user.map(|owner| self.users[owner as usize]);
        let is_own = |(client, whose): &(Uuid, Option<Uuid>)| {
            let own_client = (*client == self.acme) == (*tenant == super::callers::Tenant::Acme);
            // A user who was not there before is nobody's sibling.
            let known = whose.filter(|whose| self.users.contains(whose));
            own_client && (user.is_none() || known.is_none() || known == user)
        };
        for owner in before.by_owner.keys().chain(self.by_owner.keys()) {
            let same = before.by_owner.get(owner) == self.by_owner.get(owner);
            assert!(same || is_own(owner), "rows of {owner:?} were changed: {case}");
        }
    }
}
