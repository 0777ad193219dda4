//! Kinds of pools: work that must not wait for the connections of other work.

use std::time::Duration;

use super::tenant;
use crate::platform::settings;

/// Most connections for the snapshot: one for each of its two parts, and one for `/readyz`.
const SNAPSHOT_CONNECTIONS_MAX: u32 = 3;

/// A kind of work with connections of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolKind {
    /// Partners' requests.
    Requests,
    /// Requests that prove who somebody is: they wait for a password's hash.
    Logins,
    /// Background workers; also whatever is no request and names no other kind.
    Workers,
    /// The operators' API.
    Operators,
    /// The connectors' API: a connector that asks without end leaves operators the connections by which
    /// they take its token away.
    Connectors,
    /// The snapshot and the checks of `/readyz`: a sweep that takes long costs no edge its readiness.
    Snapshot,
}

tokio::task_local! {
    static CURRENT: PoolKind;
}

impl PoolKind {
    /// Every kind, in the order of their numbers.
    pub const ALL: [Self; 6] = [
        Self::Requests,
        Self::Logins,
        Self::Workers,
        Self::Operators,
        Self::Connectors,
        Self::Snapshot,
    ];

    /// Runs `work` on connections of this kind: the statements of its task use them. A task that
    /// it spawns names its kind anew.
    pub fn run<F: Future>(self, work: F) -> impl Future<Output = F::Output> {
        CURRENT.scope(self, work)
    }

    /// The kind of this task. What names none is a request's, or else the edge's own work.
    pub(super) fn current() -> Self {
        let unnamed = if tenant::is_request() { Self::Requests } else { Self::Workers };
        CURRENT.try_with(|kind| *kind).unwrap_or(unnamed)
    }

    /// True if its statements may see the rows of every tenant.
    pub(super) const fn sees_all_tenants(self) -> bool {
        matches!(self, Self::Workers | Self::Operators | Self::Connectors | Self::Snapshot)
    }

    /// Its place in [`PoolKind::ALL`].
    pub(super) const fn number(self) -> usize {
        self as usize
    }

    /// The name in metrics.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Logins => "logins",
            Self::Workers => "workers",
            Self::Operators => "operators",
            Self::Connectors => "connectors",
            Self::Snapshot => "snapshot",
        }
    }

    /// Most connections of the kind.
    pub const fn connections_max(self, settings: &settings::Database) -> u32 {
        match self {
            Self::Requests => settings.connections_max,
            Self::Logins => settings.login_connections_max,
            Self::Workers => settings.worker_connections_max,
            Self::Operators => settings.operator_connections_max,
            Self::Connectors => settings.connector_connections_max,
            Self::Snapshot => SNAPSHOT_CONNECTIONS_MAX,
        }
    }

    /// Most of them that one partner, operator or connector holds; `None` where the statements of none
    /// run.
    pub(super) fn share_connections_max(self, settings: &settings::Database) -> Option<u32> {
        let most = settings.partner_connections_max;
        match self {
            Self::Requests => Some(most),
            // Always some for the others.
            Self::Logins => Some(most.min(settings.login_connections_max / 2).max(1)),
            Self::Operators | Self::Connectors => {
                Some(self.connections_max(settings).saturating_sub(1).max(1))
            }
            Self::Workers | Self::Snapshot => None,
        }
    }

    /// True if it is the edge's own work, which waits for no lock for long.
    pub(super) const fn is_background(self) -> bool {
        matches!(self, Self::Workers | Self::Snapshot)
    }

    /// True if the server keeps the plans of its statements. Those of operators and connectors are
    /// planned for their criteria: a plan for any criteria reads all that the rarest one passes over.
    pub(super) const fn keeps_plans(self) -> bool {
        !matches!(self, Self::Operators | Self::Connectors)
    }

    /// Longest run of a statement.
    pub(super) const fn statement_timeout(self, settings: &settings::Database) -> Duration {
        Duration::from_millis(match self {
            Self::Workers | Self::Snapshot => settings.worker_statement_timeout_ms,
            Self::Requests | Self::Logins | Self::Operators | Self::Connectors => {
                settings.statement_timeout_ms
            }
        })
    }
}
