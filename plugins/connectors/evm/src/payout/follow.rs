//! The way of one payout, from its command to a final transaction.

mod begin;

use std::time::{Duration, Instant};

use alloy::primitives::{B256, Bytes};
use rampart_connector::pace::{now, pause};
use rampart_connector::{ClientError, Command, Held, Outcome};
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;

use super::{Attempt, Checkpoint, NATIVE_DECIMALS, Order, PayoutBody};
use crate::amounts::from_units;
use crate::chain::{At, Receipt};
use crate::fees::bound_for_each;
use crate::key::SigningError;
use crate::rpc::RpcError;
use crate::transaction::{self, decode};
use crate::work::Worker;

/// Looks of a payout that is to be sent in place of one of a payout that waits for confirmations.
const LOOKS_SAVED: u32 = 5;

/// A step that did not come to its end.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    /// The node: the step is repeated.
    #[error(transparent)]
    Chain(#[from] RpcError),
    /// The signer: the step is repeated.
    #[error(transparent)]
    Signing(#[from] SigningError),
    /// The edge refuses: the command is left to its next lease.
    #[error(transparent)]
    Edge(#[from] ClientError),
}

/// A step's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Look again after a pause.
    Wait,
    /// The command has its result, or is no longer ours.
    Ended,
}

struct Payout<'a> {
    worker: &'a Worker,
    command: &'a Command,
    body: PayoutBody,
    order: Order,
    checkpoint: Checkpoint,
    renewed_at: Instant,
    /// Time of the last signature, or of the lease.
    signed_at: Instant,
    /// Time at which the network was last given the transaction; `None` before this process did.
    sent_at: Option<Instant>,
    /// Its slot; `None` for one that another key has signed, and since a block was seen with one of its
    /// transactions, or with another one of its nonce. If that block is replaced, it is sent again without one.
    slot: Option<OwnedSemaphorePermit>,
}

/// Carries out a leased `payout.send` until it has its result or the lease is lost. It may be dropped
/// at any point: whoever leases the command next goes on from the checkpoint.
pub(crate) async fn carry_out(worker: &Worker, command: &Command, slot: OwnedSemaphorePermit) {
    let outcome = match read(worker, command) {
        Ok((body, order, checkpoint)) => {
            let now = now();
            let mut payout = Payout {
                worker,
                command,
                body,
                order,
                checkpoint,
                renewed_at: now,
                signed_at: now,
                sent_at: None,
                slot: Some(slot),
            };
            payout.run().await;
            worker.nonces.lock().await.release(&payout.holder());
            return;
        }
        Err(outcome) => outcome,
    };
    if let Some(outcome) = outcome
        && let Err(error) = worker.edge.report(command, &outcome).await
    {
        tracing::error!(command = command.id, %error, "a result was not taken");
    }
}

/// The command as far as it can be read; else its result, `None` if it must not have one.
fn read(
    worker: &Worker,
    command: &Command,
) -> Result<(PayoutBody, Order, Checkpoint), Option<Outcome>> {
    // Rejecting a payout that has begun would let the edge command another one.
    let checkpoint = command.checkpoint::<Checkpoint>().map_err(|error| {
        tracing::error!(command = command.id, %error, "a checkpoint cannot be read");
        None
    })?;
    let has_begun = checkpoint.is_some();
    let rejected = |reason: String| {
        tracing::error!(command = command.id, reason, has_begun, "a payout cannot be carried out");
        (!has_begun).then_some(Outcome::rejected(reason))
    };
    let body = command.body::<PayoutBody>();
    let body = body.map_err(|error| rejected(format!("the body cannot be read: {error}")))?;
    let order = body.order(&worker.settings).map_err(rejected)?;
    Ok((body, order, checkpoint.unwrap_or_default()))
}

impl Payout<'_> {
    async fn run(&mut self) {
        self.hold().await;
        loop {
            match self.step().await {
                Ok(Step::Ended) => return,
                Ok(Step::Wait) => {}
                Err(Trouble::Edge(error)) => {
                    tracing::error!(command = self.command.id, %error, "a payout waits");
                    return;
                }
                Err(trouble) => {
                    tracing::warn!(command = self.command.id, %trouble, "a payout is held up");
                }
            }
            pause(self.until_next_look()).await;
        }
    }

    /// Its name among those that hold nonces. Another lease of the command has another one: what is left of
    /// a lost lease must not release what the next one holds.
    fn holder(&self) -> String {
        format!("{}/{}", self.command.id, self.command.attempt)
    }

    /// Holds the nonce of the live attempt, and its coins until a block has its transaction. One that
    /// another key has signed takes neither from this account.
    async fn hold(&self) {
        let Some(attempt) = self.checkpoint.live() else { return };
        let Some((last, account)) = attempt.signed.last().and_then(decode) else { return };
        if account == self.worker.signer.address() {
            let spending = self.spending(transaction::network_fee(&last));
            self.worker.nonces.lock().await.hold(&self.holder(), attempt.nonce, spending);
        }
    }

    /// The pause before the next look at the chain: what only waits for confirmations looks less often,
    /// and in time for its lease.
    fn until_next_look(&self) -> Duration {
        let poll = self.worker.settings.chain.poll();
        match &self.slot {
            Some(_) => poll,
            None => (poll * LOOKS_SAVED).min(self.lease() / 3).max(poll),
        }
    }

    fn lease(&self) -> Duration {
        Duration::from_secs(self.worker.settings.payouts.lease_seconds.into())
    }

    async fn step(&mut self) -> Result<Step, Trouble> {
        if self.renewed_at.elapsed() > self.lease() / 3 && self.store().await? == Held::No {
            return Ok(Step::Ended);
        }
        match self.checkpoint.live().cloned() {
            None => self.begin().await,
            Some(attempt) => self.follow(&attempt).await,
        }
    }

    /// Stores the checkpoint and extends the lease.
    async fn store(&mut self) -> Result<Held, ClientError> {
        let seconds = self.worker.settings.payouts.lease_seconds;
        let asked_at = now();
        let held = self.worker.edge.checkpoint(self.command, &self.checkpoint, seconds).await?;
        self.renewed_at = asked_at;
        if held == Held::No {
            tracing::warn!(command = self.command.id, "the lease of a payout is lost");
        }
        Ok(held)
    }

    async fn report(&self, outcome: Outcome) -> Result<Step, Trouble> {
        let _ = self.worker.edge.report(self.command, &outcome).await?;
        Ok(Step::Ended)
    }

    /// Something was sent, or was about to be: it is final, in a block, waits, or can never count.
    async fn follow(&mut self, attempt: &Attempt) -> Result<Step, Trouble> {
        let chain = &self.worker.chain;
        // Not this process's: a nonce of an earlier key says nothing of another account's.
        let Some(account) = attempt.account() else { return Ok(Step::Wait) };
        if account != self.worker.signer.address() {
            // It keeps nothing of this account from its block, however long it waits.
            self.slot = None;
        }
        // Asked first, so that a block that is added meanwhile counts for nobody.
        let head = chain.head().await?;
        for hash in attempt.hashes() {
            if let Some(receipt) = chain.receipt(hash).await? {
                let depth = head.saturating_add(1).saturating_sub(receipt.block_number.to());
                if depth < self.order.confirmations {
                    return Ok(self.wait_for_blocks());
                }
                return self.finish(attempt, hash, &receipt).await;
            }
        }
        // Of the latest block alone: a node may not keep the state of the final one any more.
        if chain.count(account, At::Block(head)).await? <= attempt.nonce {
            return self.nudge(attempt).await;
        }
        let final_block = head.saturating_add(1).saturating_sub(self.order.confirmations);
        if chain.count(account, At::Block(final_block)).await? > attempt.nonce {
            let blocks = attempt.since_block..=final_block;
            return match chain.taker(account, attempt.nonce, blocks).await? {
                Some(taker) if attempt.hashes().all(|hash| hash != taker) => {
                    chain.check_id(self.worker.settings.chain.id).await?;
                    self.bury(attempt, taker).await
                }
                // It is ours, or the node does not tell: the next look will.
                _ => Ok(self.wait_for_blocks()),
            };
        }
        // In a block of somebody else's that is not final, it must wait for what becomes of that.
        Ok(self.wait_for_blocks())
    }

    /// A block has its nonce: it needs no slot, and takes nothing that the balance is not without.
    fn wait_for_blocks(&mut self) -> Step {
        self.slot = None;
        // Somebody who has them may wait for the edge: then the next look notes it.
        if let Ok(mut nonces) = self.worker.nonces.try_lock() {
            nonces.mined(&self.holder());
        }
        Step::Wait
    }

    /// The nonce is used by a transaction that is not this payout's, for good.
    async fn bury(&mut self, attempt: &Attempt, taker: B256) -> Result<Step, Trouble> {
        let (command, nonce) = (&self.command.id, attempt.nonce);
        tracing::warn!(command, nonce, %taker, "a payout's nonce is used by another transaction");
        self.checkpoint.bury(taker);
        self.use_up(attempt).await;
        self.worker.nonces.lock().await.release(&self.holder());
        Ok(if self.store().await? == Held::No { Step::Ended } else { Step::Wait })
    }

    /// Notes that the nonce is used for good, unless it is one of another key's account.
    async fn use_up(&self, attempt: &Attempt) {
        if attempt.account() == Some(self.worker.signer.address()) {
            self.worker.nonces.lock().await.used(attempt.nonce);
        }
    }

    /// No block has it: it is sent once more, and with higher fees once it is stuck.
    async fn nudge(&mut self, attempt: &Attempt) -> Result<Step, Trouble> {
        let settings = &self.worker.settings.payouts;
        let Some(last) = attempt.signed.last() else { return Ok(Step::Wait) };
        if self.slot.is_none() {
            // The block that had it is not on the chain any more, and the balance has its coins again.
            self.hold().await;
        }
        let is_stuck = self.signed_at.elapsed() > Duration::from_secs(settings.stuck_seconds);
        if is_stuck && attempt.can_grow() {
            self.signed_at = now();
            if let Some(higher) = self.replacement(last).await? {
                self.checkpoint.replace(higher.clone());
                if self.store().await? == Held::No {
                    return Ok(Step::Ended);
                }
                self.hold().await;
                self.send(&higher).await;
                return Ok(Step::Wait);
            }
        }
        let resend = Duration::from_secs(settings.resend_seconds);
        if self.sent_at.is_none_or(|sent_at| sent_at.elapsed() > resend) {
            self.send(last).await;
        }
        Ok(Step::Wait)
    }

    /// The same transaction with higher fees, signed; `None` where the payout's bound forbids it, or another
    /// key has signed the last one: by this one it would be a second payment.
    async fn replacement(&self, last: &Bytes) -> Result<Option<Bytes>, Trouble> {
        let Some((mut transaction, account)) = decode(last) else { return Ok(None) };
        if account != self.worker.signer.address() {
            let command = &self.command.id;
            tracing::warn!(command, %account, "a payout is stuck, and its key is another one");
            return Ok(None);
        }
        let bound = bound_for_each(self.order.fee_max, transaction.gas_limit);
        let market = self.worker.chain.market().await?;
        let Some(fees) = transaction::fees(&transaction).replacement(market, bound) else {
            let command = &self.command.id;
            tracing::warn!(command, "a payout is stuck, and its bound allows no higher fee");
            return Ok(None);
        };
        transaction.max_fee_per_gas = fees.max;
        transaction.max_priority_fee_per_gas = fees.priority;
        Ok(Some(self.worker.signer.sign(transaction).await?))
    }

    /// Hands signed bytes to the network. That it takes them is seen in a block.
    async fn send(&mut self, signed: &Bytes) {
        self.sent_at = Some(now());
        let (command, hash) = (&self.command.id, transaction::hash(signed));
        match self.worker.chain.send(signed).await {
            Ok(()) => tracing::info!(command, %hash, "a payout's transaction is sent"),
            Err(error) => tracing::info!(command, %hash, %error, "a transaction is not taken now"),
        }
    }

    /// The transaction has its confirmations.
    async fn finish(
        &self,
        attempt: &Attempt,
        hash: B256,
        receipt: &Receipt,
    ) -> Result<Step, Trouble> {
        let number = receipt.block_number.to();
        let block = self.worker.chain.block(number).await?;
        // A receipt of a block that is not on the chain any more tells nothing.
        let Some(block) = block.filter(|block| block.hash == receipt.block_hash) else {
            return Ok(Step::Wait);
        };
        self.use_up(attempt).await;
        let native = self.worker.settings.native_asset().map(|(code, _)| code);
        let network_fee = native.and_then(|_| from_units(receipt.network_fee(), NATIVE_DECIMALS));
        if !self.is_paid(attempt, receipt) {
            let reason = format!("transaction {hash} is in a block, and has failed");
            let result = json!({ "transactionId": hash, "networkFee": network_fee,
                "networkFeeAsset": native });
            return self.report(Outcome::Rejected { reason, result }).await;
        }
        // Before the result: a command that has one is never leased again.
        let fact = json!({
            "id": format!("payout.confirmed/{}", self.command.id),
            "kind": "payout.confirmed",
            "occurredAt": crate::work::time_of(block.timestamp.to()),
            "commandId": self.command.id,
            "orderId": self.body.order_id,
            "amount": self.body.amount,
            "asset": self.body.asset,
            "providerReference": hash,
            "transactionId": hash,
            "confirmations": self.order.confirmations,
            "networkFee": network_fee,
            "networkFeeAsset": native,
        });
        match self.worker.edge.event(&fact).await {
            Ok(_) => {}
            // It was told with other words: by a connector with another configuration.
            Err(ClientError::Refused { status: 409, .. }) => {}
            Err(error) => return Err(error.into()),
        }
        tracing::info!(command = self.command.id, %hash, number, "a payout is confirmed");
        self.report(Outcome::Done { result: json!({ "transactionId": hash }) }).await
    }

    /// True if the coins are with the recipient: a token may fail without a word.
    fn is_paid(&self, attempt: &Attempt, receipt: &Receipt) -> bool {
        let (transfer, account) = (&self.order.transfer, attempt.account());
        let Some(token) = transfer.token else { return receipt.succeeded() };
        let mut told = receipt.logs.iter().filter(|log| log.address == token);
        let is_ours = |log: &crate::chain::Log| {
            log.transfer().is_some_and(|told| Some(told.from) == account && told.to == transfer.to)
        };
        receipt.succeeded() && told.any(is_ours)
    }
}

#[cfg(test)]
mod tests;
