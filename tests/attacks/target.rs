//! The edge that is attacked, a partner of the attacker, and the neighbour.

use rampart_tests::caller::Caller;
use rampart_tests::edge::{Edge, Setup};
use rampart_tests::neighbour::Neighbour;

/// All of them.
pub(crate) struct Target {
    pub(crate) edge: Edge,
    /// The partner whose rights the attacker has, by API key.
    pub(crate) partner: Caller,
    pub(crate) neighbour: Neighbour,
}

impl Target {
    /// An edge with the settings of production, apart from rates per address: everybody here comes
    /// from loopback.
    pub(crate) async fn start() -> Self {
        Self::with(|_| ()).await
    }

    /// The same with settings that the family changes.
    pub(crate) async fn with(change: impl FnOnce(&mut Setup)) -> Self {
        let edge = Edge::with(|setup| {
            setup.set("log.access", "false");
            // For live partners; nobody listens there.
            setup.set("mail.smtp_url", "smtp://127.0.0.1:9");
            // What is pushed here costs a compilation each time.
            setup.unset("policy.cache_folder");
            setup.unset("policy.deadline_ms");
            change(setup);
        })
        .await;
        let partner = edge.partner("mallory").await;
        let neighbour = Neighbour::of(&edge.partner("neighbour").await.authenticated().await);
        Self { edge, partner, neighbour }
    }

    /// `Host` and the partner's credential, as header lines.
    pub(crate) fn own(&self) -> String {
        let (name, value) = self.partner.credential();
        format!("Host: {}\r\n{name}: {value}\r\n", self.edge.address)
    }
}
