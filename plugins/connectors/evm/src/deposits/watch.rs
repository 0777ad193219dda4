//! Watching blocks for deposits. A block is told of once it is final, and counts as looked at once
//! the edge has taken every deposit of it.

use alloy::primitives::{Address, B256, U256};
use rampart_connector::pace::pause;
use rampart_connector::{Client, ClientError};
use serde_json::json;

use super::{Deposits, confirmations};
use crate::amounts::from_units;
use crate::chain::{Block, Chain};
use crate::rpc::RpcError;
use crate::settings::{Asset, Settings};
use crate::work::time_of;

/// Coins that came to one of our addresses.
struct Deposit<'a> {
    /// Unique on the chain.
    id: String,
    transaction: B256,
    code: &'a str,
    asset: &'a Asset,
    address: Address,
    units: U256,
}

/// A look that did not come to its end.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error(transparent)]
    Chain(#[from] RpcError),
    #[error(transparent)]
    Edge(#[from] ClientError),
    #[error("{0}")]
    State(String),
}

impl Deposits {
    /// Watches blocks for good.
    pub(crate) async fn watch(&self, settings: &Settings, chain: &Chain, edge: &Client) {
        loop {
            if let Err(trouble) = self.look(settings, chain, edge).await {
                tracing::warn!(%trouble, "deposits are held up");
            }
            pause(settings.chain.poll()).await;
        }
    }

    /// Looks at every final block that was not looked at.
    async fn look(&self, settings: &Settings, chain: &Chain, edge: &Client) -> Result<(), Trouble> {
        let head = chain.head().await?;
        let Some(first) = self.next_block() else {
            return self.looked_at(head + 1).map_err(Trouble::State);
        };
        let confirmations = confirmations(settings);
        let end = (head + 2).saturating_sub(confirmations);
        for number in first..end {
            let Some(block) = chain.block(number).await? else { return Ok(()) };
            for deposit in self.deposits(settings, chain, number, &block).await? {
                deposit.tell(edge, &block, confirmations).await?;
            }
            self.looked_at(number + 1).map_err(Trouble::State)?;
        }
        Ok(())
    }

    async fn deposits<'a>(
        &self,
        settings: &'a Settings,
        chain: &Chain,
        number: u64,
        block: &Block,
    ) -> Result<Vec<Deposit<'a>>, RpcError> {
        let mut found = Vec::new();
        let assets = settings.assets.iter().map(|(code, asset)| (code.as_str(), asset));
        if let Some((code, asset)) = settings.native_asset() {
            for mined in &block.transactions {
                let Some(address) = mined.to.filter(|to| self.is_ours(to)) else { continue };
                let (transaction, units) = (mined.hash, mined.value);
                let receipt = chain.receipt(transaction).await?;
                if units.is_zero() || !receipt.is_some_and(|receipt| receipt.succeeded()) {
                    continue;
                }
                let id = format!("deposit.received/{transaction}");
                found.push(Deposit { id, transaction, code, asset, address, units });
            }
        }
        let tokens: Vec<Address> = assets.clone().filter_map(|(_, asset)| asset.contract).collect();
        for log in chain.transfers(number, &tokens).await? {
            let transfer = log.transfer().filter(|transfer| self.is_ours(&transfer.to));
            let asset = assets.clone().find(|(_, asset)| asset.contract == Some(log.address));
            let (Some(transfer), Some((code, asset))) = (transfer, asset) else { continue };
            if transfer.units.is_zero() {
                continue;
            }
            let (transaction, index) = (log.transaction_hash, log.log_index);
            let id = format!("deposit.received/{transaction}/{index}");
            let (address, units) = (transfer.to, transfer.units);
            found.push(Deposit { id, transaction, code, asset, address, units });
        }
        Ok(found)
    }
}

impl Deposit<'_> {
    async fn tell(
        &self,
        edge: &Client,
        block: &Block,
        confirmations: u64,
    ) -> Result<(), ClientError> {
        let Some(amount) = from_units(self.units, self.asset.decimals) else {
            // More digits than the API has: nobody sells as much.
            let (transaction, units) = (self.transaction, self.units);
            tracing::error!(%transaction, %units, "a deposit is too large to be told");
            return Ok(());
        };
        let fact = json!({
            "id": self.id,
            "kind": "deposit.received",
            "occurredAt": time_of(block.timestamp.to()),
            "address": self.address.to_checksum(None),
            "asset": self.code,
            "amount": amount,
            "providerReference": self.id.trim_start_matches("deposit.received/"),
            "transactionId": self.transaction,
            "confirmations": confirmations,
        });
        match edge.event(&fact).await {
            Ok(known) => {
                tracing::info!(transaction = %self.transaction, known, "a deposit is told");
                Ok(())
            }
            // It was told with other words: by a connector with another configuration.
            Err(ClientError::Refused { status: 409, .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
