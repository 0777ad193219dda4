//! Retention of what is past: records of erased users, and tables that grow with every order.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `privacy`
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Privacy {
    /// Time after an erased user's last order for which identity and accounts are kept, sealed, as law
    /// demands; zero keeps nothing.
    #[schemars(range(min = 0, max = 100))]
    pub retention_years: u16,
}

impl Default for Privacy {
    fn default() -> Self {
        Self { retention_years: 5 }
    }
}

/// `retention`
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Retention {
    /// Age above which a month of events is archived and dropped.
    #[schemars(range(min = 30, max = 36_500), extend("x-default" = "none: they stay"))]
    pub event_days: Option<u32>,
    /// The same for the timelines of orders.
    #[schemars(range(min = 30, max = 36_500), extend("x-default" = "none: they stay"))]
    pub order_transition_days: Option<u32>,
    /// The same for the audit; an edge must have released the month, whose rows it has verified.
    #[schemars(range(min = 365, max = 36_500), extend("x-default" = "none: they stay"))]
    pub audit_days: Option<u32>,
    /// Time since they were made or sent again after which deliveries that have ended are deleted.
    #[schemars(range(min = 30, max = 36_500), extend("x-default" = "none: they stay"))]
    pub delivery_days: Option<u32>,
    /// Time after their end for which offers and checkouts that nobody has confirmed are kept; a confirm
    /// of a deleted one is ER132.
    #[schemars(range(min = 30, max = 36_500), extend("x-default" = "none: they stay"))]
    pub offer_days: Option<u32>,
    /// Age above which the sealed reports of connectors are deleted; their digests stay, so that
    /// each is taken once.
    #[schemars(range(min = 30, max = 36_500), extend("x-default" = "none: they stay"))]
    pub report_days: Option<u32>,
    /// Folder that months are written to as CSV files before they are dropped; without one they stay.
    #[schemars(extend("x-default" = "none"))]
    pub archive_folder: Option<PathBuf>,
}
