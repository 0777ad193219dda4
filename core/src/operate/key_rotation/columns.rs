//! The columns that a rotation goes through.

use rampart_types::{ClientId, OfferId, StaffId, UserKey};
use uuid::Uuid;

use crate::money::connectors::commands;
use crate::money::connectors::events::report_context;
use crate::money::payments::record::report_context as payment_context;
use crate::notify::webhooks::secrets;
use crate::operate::acme;
use crate::partners::staff;
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
    /// The column that names a row of a tenant, and its type.
    pub(super) id: (&'static str, &'static str),
    /// A text that stands before every id.
    pub(super) first_id: &'static str,
    pub(super) column: &'static str,
    /// The context of a row's value, by tenant and id.
    pub(super) context: fn(Uuid, &str) -> Option<String>,
}

/// The column of a tenant's table that names the tenant.
const CLIENT: &str = "client_id";
/// What stands for it where the master key seals.
pub(super) const NO_CLIENT: &str = "'00000000-0000-0000-0000-000000000000'::uuid";
const NIL: &str = "00000000-0000-0000-0000-000000000000";

/// Every such column, but for values that live for a day or less. Its order is stored with a rotation
/// that is under way: add at the end.
pub(super) const COLUMNS: [SealedColumn; 18] = [
    SealedColumn {
        table: "client_secret",
        client: CLIENT,
        id: ("secret_id", "uuid"),
        first_id: NIL,
        column: "sealed",
        context: |client, id| Some(secret_context(client, id.parse().ok()?)),
    },
    SealedColumn {
        table: "verification_key",
        client: CLIENT,
        id: ("name", "text"),
        first_id: "",
        column: "sealed",
        context: |client, id| Some(seal_context(client, id)),
    },
    SealedColumn {
        table: "end_user",
        client: CLIENT,
        id: ("user_id", "uuid"),
        first_id: NIL,
        column: "sealed_key",
        context: |client, id| user_key(client, id).map(key_context),
    },
    SealedColumn {
        table: "mail_outbox",
        client: CLIENT,
        id: ("mail_id", "uuid"),
        first_id: NIL,
        column: "sealed",
        context: |client, id| Some(mail::context(ClientId::from(client), id.parse().ok()?)),
    },
    SealedColumn {
        table: "checkout",
        client: CLIENT,
        id: ("offer_id", "uuid"),
        first_id: NIL,
        column: "sealed_share_token",
        context: |client, id| {
            let offer = OfferId::from(id.parse::<Uuid>().ok()?);
            Some(share_token::context(ClientId::from(client), offer))
        },
    },
    SealedColumn {
        table: "payment_report",
        client: CLIENT,
        id: ("payment_id", "uuid"),
        first_id: NIL,
        column: "sealed",
        context: |client, id| Some(payment_context(ClientId::from(client), id.parse().ok()?)),
    },
    SealedColumn {
        table: "command",
        client: CLIENT,
        id: ("command_id", "uuid"),
        first_id: NIL,
        column: "sealed_body",
        context: |client, id| Some(commands::body_context(client, id.parse().ok()?)),
    },
    SealedColumn {
        table: "command",
        client: CLIENT,
        id: ("command_id", "uuid"),
        first_id: NIL,
        column: "sealed_result",
        context: |client, id| Some(commands::result_context(client, id.parse().ok()?)),
    },
    SealedColumn {
        table: "connector_event",
        client: NO_CLIENT,
        id: ("report_id", "uuid"),
        first_id: NIL,
        column: "sealed_report",
        context: |_, id| Some(report_context(id.parse().ok()?)),
    },
    SealedColumn {
        table: "personal_key",
        client: CLIENT,
        id: ("user_id", "uuid"),
        first_id: NIL,
        column: "sealed",
        context: |client, id| user_key(client, id).map(key_context),
    },
    SealedColumn {
        table: "retention_key",
        client: CLIENT,
        id: ("user_id", "uuid"),
        first_id: NIL,
        column: "sealed",
        context: |client, id| user_key(client, id).map(retained_record::key_context),
    },
    SealedColumn {
        table: "receipt_key",
        client: NO_CLIENT,
        id: ("key_id", "text"),
        first_id: "",
        column: "sealed",
        context: |_, id| Some(receipt_keys::seal_context(id)),
    },
    SealedColumn {
        table: "staff_member",
        client: CLIENT,
        id: ("staff_id", "uuid"),
        first_id: NIL,
        column: "sealed_email",
        context: |client, id| {
            let staff = StaffId::from(id.parse::<Uuid>().ok()?);
            Some(staff::email_context(ClientId::from(client), staff))
        },
    },
    SealedColumn {
        table: "staff_member",
        client: CLIENT,
        id: ("staff_id", "uuid"),
        first_id: NIL,
        column: "sealed_totp",
        context: |client, id| {
            let staff = StaffId::from(id.parse::<Uuid>().ok()?);
            Some(staff::totp_context(ClientId::from(client), staff))
        },
    },
    SealedColumn {
        table: "webhook_endpoint_secret",
        client: CLIENT,
        id: ("secret_id", "uuid"),
        first_id: NIL,
        column: "sealed",
        context: |client, id| Some(secrets::secret_context(client, id.parse().ok()?)),
    },
    SealedColumn {
        table: "acme_account",
        client: NO_CLIENT,
        id: ("directory_url", "text"),
        first_id: "",
        column: "sealed",
        context: |_, id| Some(acme::account_context(id)),
    },
    SealedColumn {
        table: "acme_certificate",
        client: NO_CLIENT,
        id: ("domains", "text"),
        first_id: "",
        column: "sealed_key",
        context: |_, id| Some(acme::key_context(id)),
    },
    SealedColumn {
        table: "tenant_key",
        client: NO_CLIENT,
        id: ("client_id", "uuid"),
        first_id: NIL,
        column: "sealed",
        context: |_, id| Some(tenant_key_context(ClientId::from(id.parse::<Uuid>().ok()?))),
    },
];

/// The key of the user whose id a row has as text.
fn user_key(client: Uuid, id: &str) -> Option<UserKey> {
    Some(UserKey { client: client.into(), user: id.parse::<Uuid>().ok()?.into() })
}
