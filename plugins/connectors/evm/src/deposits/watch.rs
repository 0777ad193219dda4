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
    /// Notes the first block to look at, unless it is known; waits for a node that does not tell. An
    /// address that is made afterwards gets nothing before that block, and a process that is killed
    /// meanwhile goes on from there.
    pub(crate) async fn begin(&self, settings: &Settings, chain: &Chain) {
        while let Err(trouble) = self.note_first_block(chain).await {
            tracing::warn!(%trouble, "deposits cannot be watched yet");
            pause(settings.chain.poll()).await;
        }
    }

    async fn note_first_block(&self, chain: &Chain) -> Result<(), Trouble> {
        if self.next_block().is_some() {
            return Ok(());
        }
        let head = chain.head().await?;
        self.looked_at(head.saturating_add(1)).map_err(Trouble::State)
    }

    /// Watches blocks for good, from the one on that [`Deposits::begin`] has noted.
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
        let Some(first) = self.next_block() else { return Ok(()) };
        let head = chain.head().await?;
        let confirmations = confirmations(settings);
        let end = head.saturating_add(2).saturating_sub(confirmations);
        if first < end {
            chain.check_id(settings.chain.id).await?;
        }
        for number in first..end {
            let Some(block) = chain.block(number).await? else {
                // One that lags behind, or has forgotten it.
                let (method, reason) = ("eth_getBlockByNumber", format!("no block {number}"));
                return Err(RpcError::Answer { method, reason }.into());
            };
            for deposit in self.deposits(settings, chain, &block).await? {
                deposit.tell(edge, &block, confirmations).await?;
            }
            self.looked_at(number + 1).map_err(Trouble::State)?;
        }
        Ok(())
    }

    /// The deposits of a block.
    ///
    /// # Errors
    /// When the node does not tell all of them: nothing is known of the block then.
    async fn deposits<'a>(
        &self,
        settings: &'a Settings,
        chain: &Chain,
        block: &Block,
    ) -> Result<Vec<Deposit<'a>>, RpcError> {
        let mut found = Vec::new();
        let assets = settings.assets.iter().map(|(code, asset)| (code.as_str(), asset));
        if let Some((code, asset)) = settings.native_asset() {
            for mined in &block.transactions {
                let Some(address) = mined.to.filter(|to| self.is_ours(to)) else { continue };
                let (transaction, units) = (mined.hash, mined.value);
                if units.is_zero() || !succeeded(chain, transaction, block).await? {
                    continue;
                }
                let id = format!("deposit.received/{transaction}");
                found.push(Deposit { id, transaction, code, asset, address, units });
            }
        }
        let tokens: Vec<Address> = assets.clone().filter_map(|(_, asset)| asset.contract).collect();
        for log in chain.transfers(block, &tokens).await? {
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

/// True if a block's transaction has not failed. A node that knows the block may not have the receipt
/// yet, or one of another block: only the receipt tells.
async fn succeeded(chain: &Chain, transaction: B256, block: &Block) -> Result<bool, RpcError> {
    let receipt = chain.receipt(transaction).await?;
    let receipt = receipt.filter(|receipt| receipt.block_hash == block.hash);
    receipt.map(|receipt| receipt.succeeded()).ok_or_else(|| RpcError::Answer {
        method: "eth_getTransactionReceipt",
        reason: format!("none for {transaction} of block {}", block.hash),
    })
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rampart_connector::{EdgeSettings, SecretSource};
    use serde_json::Value;

    use super::super::Range;
    use super::super::tests::public_key;
    use super::*;
    use crate::chain::TRANSFER;
    use crate::rpc::Rpc;
    use crate::rpc::tests::node;
    use crate::settings::DepositSettings;

    fn word(byte: u8) -> B256 {
        B256::repeat_byte(byte)
    }

    /// The ids of a block's deposits by a node that answers so about receipts and logs.
    async fn found(test: &str, receipt: Value, logs: Value) -> Result<Vec<String>, RpcError> {
        let folder = std::env::temp_dir().join(format!("rampart-{test}-{}", std::process::id()));
        let settings: Settings = rampart_connector::program::read(Path::new("evm.toml")).unwrap();
        let keys = public_key();
        let watched = DepositSettings { keys, first_index: 0, first_block: None };
        let deposits = Deposits::open(&watched, &folder).unwrap();
        let ours = deposits.addresses(Range { first: 0, count: 1 }).unwrap()[0];
        let block = json!({"hash": word(1), "timestamp": "0x1", "transactions": [
            {"hash": word(2), "from": Address::ZERO, "to": ours, "value": "0x5", "nonce": "0x0"}]});
        let block: Block = serde_json::from_value(block).unwrap();
        let url = node(move |method, params| match method {
            "eth_getTransactionReceipt" => receipt.clone(),
            "eth_getLogs" if params[0]["blockHash"] == json!(word(1)) => {
                let text = logs.to_string().replace("OURS", &ours.into_word().to_string());
                serde_json::from_str(&text).unwrap()
            }
            _ => Value::Null,
        });
        let chain = Chain::new(Rpc::new(&url.await).unwrap());
        let found = deposits.deposits(&settings, &chain, &block).await;
        std::fs::remove_dir_all(&folder).unwrap();
        let found = found?;
        Ok(found.into_iter().map(|deposit| deposit.id).collect())
    }

    fn receipt(block: u8, status: &str) -> Value {
        json!({"blockNumber": "0x7", "blockHash": word(block), "status": status, "gasUsed": "0x1",
            "effectiveGasPrice": "0x1", "logs": []})
    }

    fn log(removed: bool) -> Value {
        json!({"address": "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48", "logIndex": "0x3",
            "topics": [TRANSFER, B256::ZERO, "OURS"], "data": B256::with_last_byte(9),
            "transactionHash": word(4), "removed": removed})
    }

    #[tokio::test]
    async fn a_block_whose_receipts_are_not_known_yet_is_not_looked_at() {
        let native = format!("deposit.received/{}", word(2));
        let found = async |receipt: Value| found("receipts", receipt, json!([])).await;
        assert_eq!(found(receipt(1, "0x1")).await.unwrap(), [native]);
        assert!(found(receipt(1, "0x0")).await.unwrap().is_empty(), "it has failed");
        for unknown in [Value::Null, receipt(8, "0x1")] {
            let held_up = found(unknown).await.unwrap_err().to_string();
            assert!(held_up.starts_with("eth_getTransactionReceipt: "), "{held_up}");
        }
    }

    #[tokio::test]
    async fn logs_are_those_of_the_block_that_stand() {
        let logs = json!([log(false), log(true)]);
        let found = found("logs", receipt(1, "0x0"), logs).await.unwrap();
        assert_eq!(found, [format!("deposit.received/{}/3", word(4))]);
    }

    #[tokio::test]
    async fn the_first_block_is_noted_before_anything_can_come() {
        let folder = std::env::temp_dir().join(format!("rampart-watch-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let settings: Settings = rampart_connector::program::read(Path::new("evm.toml")).unwrap();
        let begun = async |head: &'static str| {
            let url = node(move |_, _| json!(head)).await;
            let chain = Chain::new(Rpc::new(&url).unwrap());
            let keys = public_key();
            let watched = DepositSettings { keys, first_index: 0, first_block: None };
            // Killed right afterwards, whatever it has made.
            let deposits = Deposits::open(&watched, &folder).unwrap();
            deposits.begin(&settings, &chain).await;
            deposits.next_block()
        };
        assert_eq!(begun("0x63").await, Some(100));
        assert_eq!(begun("0xc7").await, Some(100), "what came in between is looked at");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[tokio::test]
    async fn a_block_that_the_node_does_not_tell_is_waited_for() {
        let folder = std::env::temp_dir().join(format!("rampart-look-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let settings: Settings = rampart_connector::program::read(Path::new("evm.toml")).unwrap();
        std::fs::write(folder.join("token"), "rcn_abc").unwrap();
        let token = SecretSource::File(folder.join("token"));
        let edge = EdgeSettings { url: "http://127.0.0.1:9".to_owned(), token, ca_file: None };
        let edge = Client::new(&edge).unwrap();
        let watched =
            DepositSettings { keys: public_key(), first_index: 0, first_block: Some(100) };
        let deposits = Deposits::open(&watched, &folder).unwrap();
        for (id, told) in [
            ("0x2", "eth_chainId: the answer cannot be read: it is 2, not 1"),
            ("0x1", "eth_getBlockByNumber: the answer cannot be read: no block 100"),
        ] {
            let url = node(move |method, _| match method {
                "eth_blockNumber" => json!("0x7d0"),
                "eth_chainId" => json!(id),
                _ => Value::Null,
            });
            let chain = Chain::new(Rpc::new(&url.await).unwrap());
            let held_up = deposits.look(&settings, &chain, &edge).await.unwrap_err();
            assert_eq!((&*held_up.to_string(), deposits.next_block()), (told, Some(100)));
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
