//! `rampart partner`, and of one partner `key`, `secret`, `verification-key` and `webhook`.

use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::json;

use super::{Call, Members, Page, StartupError, Target};

pub(super) const PARTNERS: &str =
    "SLUG slug, NAME name, MODE mode, STATUS status, CREATED createdAt";

pub(super) const STAFF: &str =
    "ID id, EMAIL email, ROLE role, JOINED joined, SECOND FACTOR secondFactor, CREATED createdAt";

/// Partners.
#[derive(Debug, Serialize, Subcommand)]
#[serde(rename_all_fields = "camelCase", untagged)]
pub(crate) enum Partner {
    /// Make a partner and print its credentials, once.
    Add {
        /// Slug: a-z, 0-9 and -.
        slug: String,
        /// Name for people; the slug if not given.
        #[arg(long)]
        name: Option<String>,
        /// `test` (everything is simulated) or `live`.
        #[arg(long, default_value = "test")]
        mode: String,
    },
    /// List partners.
    List(Page),
    /// Show a partner's settings.
    Show(PartnerArgs),
    /// Change a partner's settings: `mode=live`, `complianceGate=before-payment`, `rateLimits.client="50/s"`.
    /// Members that are not named stay as they are; `rateLimits.client=null` takes one away.
    Set {
        /// Its slug.
        slug: String,
        #[command(flatten)]
        members: Members,
    },
    /// Refuse every credential of a partner, on every edge within a second.
    Suspend(PartnerArgs),
    /// Let a suspended partner in again.
    Resume(PartnerArgs),
    /// People of a partner who sign in to its portal.
    #[command(subcommand)]
    Staff(Staff),
}

/// One partner.
#[derive(Debug, Args, Serialize)]
pub(crate) struct PartnerArgs {
    /// Its slug.
    slug: String,
}

/// The staff of a partner.
#[derive(Debug, Serialize, Subcommand)]
#[serde(rename_all_fields = "camelCase", untagged)]
pub(crate) enum Staff {
    /// List people and invitations.
    List {
        /// The partner's slug.
        slug: String,
        #[command(flatten)]
        page: Page,
    },
    /// Mail somebody a link to join.
    Invite {
        /// The partner's slug.
        slug: String,
        /// E-mail address.
        email: String,
        /// `owner`, `developer` or `support`.
        #[arg(long)]
        role: String,
    },
    /// Remove somebody, whose sessions end at once.
    Remove {
        /// The partner's slug.
        slug: String,
        /// The person's id, as `partner staff list` shows it.
        id: String,
    },
}

impl Call for Staff {
    fn call(&self, target: &Target) -> Result<(), StartupError> {
        match self {
            Self::List { .. } => target.list("partners/{slug}/staff", self, STAFF),
            Self::Invite { .. } => target.call("POST partners/{slug}/staff", self),
            Self::Remove { .. } => target.call("DELETE partners/{slug}/staff/{id}", self),
        }
    }
}

impl Call for Partner {
    fn call(&self, target: &Target) -> Result<(), StartupError> {
        let set_status = |partner: &PartnerArgs, status: &str| {
            let body = json!({"slug": partner.slug, "status": status});
            target.call("PATCH partners/{slug}", &body)
        };
        match self {
            Self::Add { slug, name, mode } => {
                let name = name.as_ref().unwrap_or(slug);
                target.call("POST partners", &json!({"slug": slug, "name": name, "mode": mode}))
            }
            Self::List(page) => target.list("partners", page, PARTNERS),
            Self::Show(partner) => target.call("GET partners/{slug}", partner),
            Self::Set { .. } => target.call("PATCH partners/{slug}", self),
            Self::Suspend(partner) => set_status(partner, "suspended"),
            Self::Resume(partner) => set_status(partner, "active"),
            Self::Staff(staff) => staff.call(target),
        }
    }
}

/// API keys of a partner.
#[derive(Debug, Serialize, Subcommand)]
#[serde(rename_all_fields = "camelCase", untagged)]
pub(crate) enum Key {
    /// Issue a key and print it, once.
    Issue {
        /// The partner's slug.
        slug: String,
        /// A human-readable note of the key's purpose.
        #[arg(long, default_value = "")]
        name: String,
        /// From when it is refused, RFC 3339.
        #[arg(long)]
        expires_at: Option<String>,
        /// A scope, as orders:read; can be given several times. Everything without one.
        #[arg(long = "scope", value_name = "SCOPE")]
        scopes: Vec<String>,
        /// A network it may come from (CIDR); can be given several times.
        #[arg(long = "allow", value_name = "CIDR")]
        allowed_addresses: Vec<String>,
    },
    /// Revoke a key, on every edge within a second.
    Revoke {
        /// The partner's slug.
        slug: String,
        /// The key's id, as issued or as `partner show` lists it.
        id: String,
    },
}

impl Call for Key {
    fn call(&self, target: &Target) -> Result<(), StartupError> {
        match self {
            Self::Issue { .. } => target.call("POST partners/{slug}/api-keys", self),
            Self::Revoke { .. } => target.call("DELETE partners/{slug}/api-keys/{id}", self),
        }
    }
}

/// Secrets of a partner.
#[derive(Debug, Serialize, Subcommand)]
#[serde(rename_all_fields = "camelCase", untagged)]
pub(crate) enum Secret {
    /// Rotate a secret and print the new one, once; earlier ones end with the overlap.
    Rotate {
        /// The partner's slug.
        slug: String,
        /// password, signing or webhook.
        kind: String,
        /// Seconds for which the earlier one is still good.
        #[arg(long, value_name = "SECONDS")]
        overlap_seconds: Option<u32>,
    },
}

impl Call for Secret {
    fn call(&self, target: &Target) -> Result<(), StartupError> {
        target.call("POST partners/{slug}/secrets/rotate", self)
    }
}

pub(super) const VERIFICATION_KEYS: &str = "\
    NAME name, ALGORITHM algorithm, FROM notBefore, UNTIL notAfter, SET createdAt, \
    SHA-256 fingerprint";

/// Keys by which a partner's policy verifies signed requests.
#[derive(Debug, Serialize, Subcommand)]
#[serde(rename_all_fields = "camelCase", untagged)]
pub(crate) enum VerificationKey {
    /// List a partner's keys by name, without the keys.
    List {
        /// The partner's slug.
        slug: String,
        #[command(flatten)]
        page: Page,
    },
    /// Set a key: `algorithm=hmac-sha256 key=…`, with `notAfter` and a signature where it needs them.
    Set {
        /// The partner's slug.
        slug: String,
        /// The key's name.
        name: String,
        #[command(flatten)]
        members: Members,
    },
    /// Remove a key.
    Remove {
        /// The partner's slug.
        slug: String,
        /// The key's name.
        name: String,
    },
}

impl Call for VerificationKey {
    fn call(&self, target: &Target) -> Result<(), StartupError> {
        match self {
            Self::List { .. } => {
                target.list("partners/{slug}/verification-keys", self, VERIFICATION_KEYS)
            }
            Self::Set { .. } => target.call("PUT partners/{slug}/verification-keys/{name}", self),
            Self::Remove { .. } => {
                target.call("DELETE partners/{slug}/verification-keys/{name}", self)
            }
        }
    }
}

pub(super) const WEBHOOKS: &str =
    "ID id, STATE state, FAILING SINCE failingSince, EVENTS events, CREATED createdAt, URL url";

/// Webhook endpoints of partners.
#[derive(Debug, Serialize, Subcommand)]
#[serde(rename_all_fields = "camelCase", untagged)]
pub(crate) enum Webhook {
    /// List a partner's endpoints, oldest first.
    List {
        /// The partner's slug.
        partner: String,
        #[command(flatten)]
        page: Page,
    },
    /// Remove an endpoint: what waited for it is not sent any more.
    Remove(EndpointArgs),
    /// Send a test event to one endpoint.
    Test(EndpointArgs),
}

/// An endpoint of a partner.
#[derive(Args, Debug, Serialize)]
pub(crate) struct EndpointArgs {
    /// The partner's slug.
    partner: String,
    /// The endpoint's id, as `webhook list` shows it.
    id: String,
}

impl Call for Webhook {
    fn call(&self, target: &Target) -> Result<(), StartupError> {
        match self {
            Self::List { .. } => target.list("partners/{partner}/webhooks", self, WEBHOOKS),
            Self::Remove(webhook) => {
                target.call("DELETE partners/{partner}/webhooks/{id}", webhook)
            }
            Self::Test(webhook) => {
                target.call("POST partners/{partner}/webhooks/{id}/test", webhook)
            }
        }
    }
}
