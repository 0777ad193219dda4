//! The beginning of a payout: its first transaction, or the first one of another nonce.

use alloy::primitives::U256;
use rampart_connector::pace::now;
use rampart_connector::{Held, Outcome};

use super::{Payout, Step, Trouble};
use crate::chain::{At, Call};
use crate::fees::{Fees, bound_for_each};
use crate::nonces::{Needed, Spending};
use crate::payout::Attempt;
use crate::rpc::RpcError;
use crate::transaction::{Slot, Transfer};
use crate::work::Worker;

/// Pause before another attempt at a payout for which coins lack, or fees are too high, in seconds.
const RETRY_SECONDS: u32 = 30;

impl Payout<'_> {
    /// Signs, stores and sends a transaction. Nothing was sent before that may count.
    pub(super) async fn begin(&mut self) -> Result<Step, Trouble> {
        let Worker { chain, signer, nonces, .. } = self.worker;
        let needed = nonces.lock().await.needed(&self.spending(U256::ZERO));
        // Before the gas is asked for: a contract refuses what the account lacks.
        if let Some(reason) = self.lacks(needed, U256::ZERO).await? {
            return self.retry(reason).await;
        }
        let transfer = &self.order.transfer;
        let (to, value, input) = (transfer.called(), transfer.value(), transfer.input());
        let call = Call { from: signer.address(), to, value, input: &input };
        let gas = match chain.gas(&call).await {
            Ok(gas) if gas <= 21_000 => gas,
            // What a contract takes may be more by the time it runs.
            Ok(gas) => gas.saturating_add(gas / 4),
            Err(error) if error.is_revert() => {
                let reason = format!("the chain refuses the transfer: {error}");
                return self.report(Outcome::rejected(reason)).await;
            }
            // Such as of a recipient that takes all gas there is: held up here, it would keep its slot.
            Err(error @ RpcError::Node { .. }) => return self.retry(error.to_string()).await,
            Err(error) => return Err(error.into()),
        };
        let market = chain.market().await?;
        let Some(fees) = Fees::first(market, bound_for_each(self.order.fee_max, gas)) else {
            return self.retry("the network's fees are above the payout's bound".to_owned()).await;
        };
        let network_fee = U256::from(fees.max).saturating_mul(U256::from(gas));
        let spending = self.spending(network_fee);
        // One after the other, so that no nonce is sent before the ones below it are stored, and no coins
        // are counted for two.
        let mut nonces = nonces.lock().await;
        if let Some(reason) = self.lacks(nonces.needed(&spending), network_fee).await? {
            drop(nonces);
            return self.retry(reason).await;
        }
        let chain_id = self.worker.settings.chain.id;
        chain.check_id(chain_id).await?;
        let since_block = chain.head().await?;
        let count = chain.count(signer.address(), At::Pending).await?;
        let nonce = nonces.take(&self.holder(), count, spending);
        let slot = Slot { chain_id, nonce };
        let transaction = transfer.transaction(slot, gas, fees);
        let signed = match signer.sign(transaction).await {
            Ok(signed) => signed,
            Err(error) => {
                nonces.release(&self.holder());
                return Err(error.into());
            }
        };
        let attempt = Attempt { nonce, since_block, signed: vec![signed.clone()], taken_by: None };
        self.checkpoint.begin(attempt);
        let stored = self.store().await;
        if !matches!(stored, Ok(Held::Yes)) {
            // Before anybody takes the next one: no block would have that without this one.
            nonces.release(&self.holder());
        }
        if stored? == Held::No {
            return Ok(Step::Ended);
        }
        self.send(&signed).await;
        drop(nonces);
        self.signed_at = now();
        Ok(Step::Wait)
    }

    /// The coins that a transaction takes for which the network has so much at most.
    pub(super) fn spending(&self, network_fee: U256) -> Spending {
        let Transfer { token, units, .. } = self.order.transfer;
        Spending { token, units, network_fee }
    }

    /// The reason that the account cannot pay, with so much of what is needed for the network; `None` if
    /// it can. The balance is asked for after what is needed was counted: a transaction that a block
    /// takes in between counts twice, not for nothing.
    pub(super) async fn lacks(
        &self,
        needed: Needed,
        network_fee: U256,
    ) -> Result<Option<String>, RpcError> {
        let Worker { chain, signer, .. } = self.worker;
        let (token, account) = (self.order.transfer.token, signer.address());
        let mut lacks_asset = false;
        if let Some(token) = token {
            lacks_asset = chain.token_balance(token, account).await? < needed.token;
        }
        let native = chain.balance(account).await?;
        let without_fee = needed.native.saturating_sub(network_fee);
        lacks_asset |= token.is_none() && native < without_fee;
        Ok(match (lacks_asset, native < needed.native) {
            (true, _) => Some(format!("the account lacks {}", self.body.asset)),
            (false, true) => Some("the account lacks coins for the network's fee".to_owned()),
            (false, false) => None,
        })
    }

    /// Nothing that was sent can count: the edge may give the command up.
    async fn retry(&self, reason: String) -> Result<Step, Trouble> {
        tracing::warn!(command = self.command.id, reason, "a payout waits");
        let retry_after_seconds = Some(RETRY_SECONDS);
        self.report(Outcome::Retry { reason, retry_after_seconds }).await
    }
}
