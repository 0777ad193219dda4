//! Holders of shares of a pool's connections: nobody's slow statements take the connections of others.

use std::sync::Arc;

use rampart_types::ClientId;

use super::tenant;

/// A party whose statements hold no more connections at a time than its share.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum ShareHolder {
    Partner(ClientId),
    /// By the text that tells them from other operators.
    Operator(Arc<str>),
    /// By its name.
    Connector(Arc<str>),
}

tokio::task_local! {
    /// The one that a call of a private listener is by.
    static CALLER: ShareHolder;
}

/// Runs the work of a call by this operator: its statements hold no more connections than their share.
pub fn run_for_operator<F: Future>(identity: Arc<str>, work: F) -> impl Future<Output = F::Output> {
    CALLER.scope(ShareHolder::Operator(identity), work)
}

/// Runs the work of a call by the connector of this name: as that by an operator.
pub(crate) fn run_for_connector<F: Future>(
    name: Arc<str>,
    work: F,
) -> impl Future<Output = F::Output> {
    CALLER.scope(ShareHolder::Connector(name), work)
}

impl ShareHolder {
    /// The holder that this task works for, if it is known already.
    pub(super) fn current() -> Option<Self> {
        let caller = CALLER.try_with(Self::clone);
        caller.ok().or_else(|| tenant::current().map(Self::Partner))
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[tokio::test]
    async fn a_call_holds_connections_of_its_caller_and_a_request_of_its_partner() {
        let current = async || ShareHolder::current();
        assert_eq!(current().await, None);
        let partner = ClientId::from(Uuid::nil());
        let of_request = tenant::run(Some(partner), current()).await;
        assert_eq!(of_request, Some(ShareHolder::Partner(partner)));
        let of_call = run_for_operator("ada".into(), current()).await;
        assert_eq!(of_call, Some(ShareHolder::Operator("ada".into())));
        let of_call = run_for_connector("ada".into(), current()).await;
        assert_eq!(of_call, Some(ShareHolder::Connector("ada".into())));
    }
}
