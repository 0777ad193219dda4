//! The columns that a rotation goes through.

use rampart_types::{ClientId, OfferId, StaffId, UserKey};
use uuid::Uuid;

use crate::money::connectors::commands;
use crate::money::connectors::events::report_context;
use crate::money::payments::record::report_context as payment_context;
use crate::notify::webhooks::secrets;
use crate::partners::staff;
use crate::platform::acme;
use crate::platform::crypto::personal_data_key::key_context;
use crate::platform::crypto::tenant_key::tenant_key_context;
use crate::platform::mail;
use crate::policies::runtime::verification_keys::seal_context;
use crate::tenancy::tenants::load::secret_context;
use crate::trading::checkout::share_token;
use crate::trading::receipt_keys;
use crate::users::retained_record;

/// A column of values that are sealed under the master key or a tenant's.
pub(super) struct SealedColumn {
    pub(super) table: &'static str,
    /// The column that names the tenant whose key seals; for the master key, one for all.
    pub(super) client: &'static str,
    pub(super) id: IdColumn,
    pub(super) column: &'static str,
    pub(super) context: Context,
    /// True if what a tenant's key has sealed the master key seals once more.
    pub(super) is_twice: bool,
}

/// The column that names a row of a tenant.
pub(super) struct IdColumn {
    pub(super) name: &'static str,
    pub(super) sql_type: &'static str,
}

/// Gives the context of a value by its tenant and the id of its row.
type Context = fn(Uuid, &str) -> Option<String>;

/// The column of a tenant's table that names the tenant.
const CLIENT: &str = "client_id";
/// Stands in its place where the master key seals.
pub(super) const NO_CLIENT: &str = "'00000000-0000-0000-0000-000000000000'::uuid";
const NIL: &str = "00000000-0000-0000-0000-000000000000";

/// Every such column, but for values that live for a day or less. Its order is stored with a rotation
/// that is under way: add at the end.
pub(super) const COLUMNS: [SealedColumn; 18] = [
    of_client("client_secret", uuid("secret_id"), "sealed", |client, id| {
        Some(secret_context(client, id.parse().ok()?))
    }),
    of_client("verification_key", text("name"), "sealed", |client, id| {
        Some(seal_context(client, id))
    }),
    of_user("end_user", "sealed_key", |client, id| user_key(client, id).map(key_context)),
    twice(of_client("mail_outbox", uuid("mail_id"), "sealed", |client, id| {
        Some(mail::context(ClientId::from(client), id.parse().ok()?))
    })),
    twice(of_client("checkout", uuid("offer_id"), "sealed_share_token", |client, id| {
        let offer = OfferId::from(id.parse::<Uuid>().ok()?);
        Some(share_token::context(ClientId::from(client), offer))
    })),
    of_client("payment_report", uuid("payment_id"), "sealed", |client, id| {
        Some(payment_context(ClientId::from(client), id.parse().ok()?))
    }),
    of_client("command", uuid("command_id"), "sealed_body", |client, id| {
        Some(commands::body_context(client, id.parse().ok()?))
    }),
    of_client("command", uuid("command_id"), "sealed_result", |client, id| {
        Some(commands::result_context(client, id.parse().ok()?))
    }),
    of_service("connector_event", uuid("report_id"), "sealed_report", |_, id| {
        Some(report_context(id.parse().ok()?))
    }),
    of_user("personal_key", "sealed", |client, id| user_key(client, id).map(key_context)),
    of_user("retention_key", "sealed", |client, id| {
        user_key(client, id).map(retained_record::key_context)
    }),
    of_service("receipt_key", text("key_id"), "sealed", |_, id| {
        Some(receipt_keys::seal_context(id))
    }),
    of_client("staff_member", uuid("staff_id"), "sealed_email", |client, id| {
        let staff = StaffId::from(id.parse::<Uuid>().ok()?);
        Some(staff::email_context(ClientId::from(client), staff))
    }),
    of_client("staff_member", uuid("staff_id"), "sealed_totp", |client, id| {
        let staff = StaffId::from(id.parse::<Uuid>().ok()?);
        Some(staff::totp_context(ClientId::from(client), staff))
    }),
    of_client("webhook_endpoint_secret", uuid("secret_id"), "sealed", |client, id| {
        Some(secrets::secret_context(client, id.parse().ok()?))
    }),
    of_service("acme_account", text("directory_url"), "sealed", |_, id| {
        Some(acme::account_context(id))
    }),
    of_service("acme_certificate", text("domains"), "sealed_key", |_, id| {
        Some(acme::key_context(id))
    }),
    of_service("tenant_key", uuid("client_id"), "sealed", |_, id| {
        Some(tenant_key_context(ClientId::from(id.parse::<Uuid>().ok()?)))
    }),
];

const fn uuid(name: &'static str) -> IdColumn {
    IdColumn { name, sql_type: "uuid" }
}

const fn text(name: &'static str) -> IdColumn {
    IdColumn { name, sql_type: "text" }
}

/// A column of a tenant's rows.
const fn of_client(
    table: &'static str,
    id: IdColumn,
    column: &'static str,
    context: Context,
) -> SealedColumn {
    SealedColumn { table, client: CLIENT, id, column, context, is_twice: false }
}

/// A column of keys of users.
const fn of_user(table: &'static str, column: &'static str, context: Context) -> SealedColumn {
    twice(of_client(table, uuid("user_id"), column, context))
}

/// The column, whose values the master key seals once more.
const fn twice(column: SealedColumn) -> SealedColumn {
    SealedColumn { is_twice: true, ..column }
}

/// A column that the master key seals.
const fn of_service(
    table: &'static str,
    id: IdColumn,
    column: &'static str,
    context: Context,
) -> SealedColumn {
    SealedColumn { table, client: NO_CLIENT, id, column, context, is_twice: false }
}

impl SealedColumn {
    /// A text that stands before every id.
    pub(super) fn first_id(&self) -> &'static str {
        if self.id.sql_type == "uuid" { NIL } else { "" }
    }
}

/// The key of the user whose id a row has as text.
fn user_key(client: Uuid, id: &str) -> Option<UserKey> {
    Some(UserKey { client: client.into(), user: id.parse::<Uuid>().ok()?.into() })
}
