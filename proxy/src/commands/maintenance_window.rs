//! `rampart maintenance-window list|add|end`.

use clap::{Args, Subcommand};
use http::Method;
use serde_json::json;

use super::{Body, Call, ObjectArgs, Page, StartupError, Target};

/// The path of the windows.
const PATH: &str = "maintenance-windows";

const COLUMNS: &str = "\
    ID id, STATUS status, PAIR pair, METHOD paymentMethod, STARTS startsAt, ENDS endsAt, \
    BY createdBy, REASON reason";

/// Maintenance windows of pairs and payment methods.
#[derive(Debug, Subcommand)]
pub(crate) enum MaintenanceWindow {
    /// List windows, the latest start first.
    List(Page),
    /// Close a pair, or a payment method, from a time to another one.
    Add(NewWindow),
    /// End a window that runs, or withdraw one to come.
    End(ObjectArgs),
}

/// A window to be made.
#[derive(Args, Debug)]
pub(crate) struct NewWindow {
    /// The pair, such as BTC-EUR.
    #[arg(long, required_unless_present = "payment_method", conflicts_with = "payment_method")]
    pair: Option<String>,
    /// The payment method, such as creditCard, in place of a pair.
    #[arg(long, value_name = "CODE")]
    payment_method: Option<String>,
    /// Its start, such as 2026-03-01T12:00:00Z; now if not given.
    #[arg(long, value_name = "TIME")]
    starts_at: Option<String>,
    /// Its end.
    #[arg(long, value_name = "TIME")]
    ends_at: String,
    /// The reason, for the audit.
    #[arg(long)]
    reason: String,
}

impl Call for MaintenanceWindow {
    fn call(self, target: &Target) -> Result<(), StartupError> {
        match self {
            Self::List(page) => page.print(target, &[PATH], [], COLUMNS),
            Self::Add(new) => {
                let NewWindow { pair, payment_method, starts_at, ends_at, reason } = new;
                let body = json!({
                    "pair": pair, "paymentMethod": payment_method, "startsAt": starts_at,
                    "endsAt": ends_at, "reason": reason,
                });
                target.send(Method::POST, &[PATH], body)
            }
            Self::End(window) => target.send(Method::DELETE, &[PATH, &window.id], Body::None),
        }
    }
}
