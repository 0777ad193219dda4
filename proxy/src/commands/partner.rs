//! `rampart partner add|list|show|set|suspend|resume|staff`.

use clap::{Args, Subcommand};
use http::Method;
use serde_json::json;

use super::{Body, Call, Members, Page, StartupError, Target};

const COLUMNS: &str = "SLUG slug, NAME name, MODE mode, STATUS status, CREATED createdAt";

const STAFF_COLUMNS: &str =
    "ID id, EMAIL email, ROLE role, JOINED joined, SECOND FACTOR secondFactor, CREATED createdAt";

/// Partners.
#[derive(Debug, Subcommand)]
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
    /// Change a partner's settings: `mode=live`, `complianceGate=none`, `rateLimits.client="50/s"`.
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
#[derive(Debug, Args)]
pub(crate) struct PartnerArgs {
    /// Its slug.
    slug: String,
}

/// The staff of a partner.
#[derive(Debug, Subcommand)]
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
    fn call(self, target: &Target) -> Result<(), StartupError> {
        match self {
            Self::List { slug, page } => {
                page.print(target, &["partners", &slug, "staff"], [], STAFF_COLUMNS)
            }
            Self::Invite { slug, email, role } => {
                let body = json!({ "email": email, "role": role });
                target.send(Method::POST, &["partners", &slug, "staff"], body)
            }
            Self::Remove { slug, id } => {
                target.send(Method::DELETE, &["partners", &slug, "staff", &id], Body::None)
            }
        }
    }
}

impl Call for Partner {
    fn call(self, target: &Target) -> Result<(), StartupError> {
        let set_status = |partner: PartnerArgs, status: &str| {
            let body = json!({ "status": status });
            target.send(Method::PATCH, &["partners", &partner.slug], body)
        };
        match self {
            Self::Add { slug, name, mode } => {
                let name = name.unwrap_or_else(|| slug.clone());
                let body = json!({"slug": slug, "name": name, "mode": mode});
                target.send(Method::POST, &["partners"], body)
            }
            Self::List(page) => page.print(target, &["partners"], [], COLUMNS),
            Self::Show(partner) => target.get(&["partners", &partner.slug]),
            Self::Set { slug, members } => {
                members.send(target, Method::PATCH, &["partners", &slug])
            }
            Self::Suspend(partner) => set_status(partner, "suspended"),
            Self::Resume(partner) => set_status(partner, "active"),
            Self::Staff(staff) => staff.call(target),
        }
    }
}
