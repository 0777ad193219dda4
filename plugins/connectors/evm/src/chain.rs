//! The chain, as a node tells of it.

use std::ops::RangeInclusive;

use alloy::primitives::{Address, B256, Bloom, Bytes, U64, U256, b256};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::fees::Market;
use crate::rpc::{Rpc, RpcError};

/// `keccak256("Transfer(address,address,uint256)")`: the event of ERC-20.
pub(crate) const TRANSFER: B256 =
    b256!("ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef");
/// Blocks whose fees tell the moment's.
const FEE_BLOCKS: u64 = 5;
/// Least part of a producer, in wei for each unit of gas.
const PRIORITY_MIN: u128 = 1_000_000;

/// A transaction as it is in a block.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Mined {
    pub(crate) hash: B256,
    pub(crate) from: Address,
    pub(crate) to: Option<Address>,
    pub(crate) value: U256,
    pub(crate) nonce: U64,
}

/// A block with its transactions.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Block {
    pub(crate) hash: B256,
    pub(crate) timestamp: U64,
    /// A filter of its logs; `None` of a chain whose blocks have none.
    logs_bloom: Option<Bloom>,
    pub(crate) transactions: Vec<Mined>,
}

impl Block {
    /// True if its filter says that it may have transfers of a token. Some chains fill it in every block.
    fn may_transfer(&self, token: Address) -> bool {
        let filter = self.logs_bloom.filter(|bloom| *bloom != Bloom::repeat_byte(0xff));
        filter.is_some_and(|bloom| bloom.contains_raw_log(token, &[TRANSFER]))
    }
}

/// A log of a contract.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Log {
    pub(crate) address: Address,
    pub(crate) topics: Vec<B256>,
    pub(crate) data: Bytes,
    pub(crate) transaction_hash: B256,
    pub(crate) log_index: U64,
    /// Its block is not on the chain any more.
    #[serde(default)]
    removed: bool,
}

/// A transfer of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TokenTransfer {
    pub(crate) from: Address,
    pub(crate) to: Address,
    pub(crate) units: U256,
}

impl Log {
    /// The transfer that it tells of, if it does.
    pub(crate) fn transfer(&self) -> Option<TokenTransfer> {
        let [kind, from, to] = self.topics[..] else { return None };
        if kind != TRANSFER || self.data.len() != 32 {
            return None;
        }
        let (from, to) = (Address::from_word(from), Address::from_word(to));
        Some(TokenTransfer { from, to, units: U256::from_be_slice(&self.data) })
    }
}

/// The receipt of a mined transaction.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Receipt {
    pub(crate) block_number: U64,
    pub(crate) block_hash: B256,
    pub(crate) status: U64,
    gas_used: U64,
    /// Price paid for each unit of gas.
    effective_gas_price: U256,
    pub(crate) logs: Vec<Log>,
}

impl Receipt {
    pub(crate) fn succeeded(&self) -> bool {
        self.status == U64::from(1)
    }

    /// Fee that the sender has paid for it, in the smallest unit of the chain's own coin.
    pub(crate) fn network_fee(&self) -> U256 {
        self.effective_gas_price.saturating_mul(U256::from(self.gas_used))
    }
}

/// A state of the chain that a question is about.
#[derive(Clone, Copy, Debug)]
pub(crate) enum At {
    /// After the latest block and all transactions that the node knows.
    Pending,
    /// After this block.
    Block(u64),
}

impl At {
    fn tag(self) -> Value {
        match self {
            Self::Pending => json!("pending"),
            Self::Block(number) => json!(U64::from(number)),
        }
    }
}

/// A call of a contract, or a transfer, that is not sent.
pub(crate) struct Call<'a> {
    pub(crate) from: Address,
    pub(crate) to: Address,
    pub(crate) value: U256,
    pub(crate) input: &'a Bytes,
}

/// A chain behind a node.
#[derive(Clone, Debug)]
pub(crate) struct Chain(Rpc);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FeeHistory {
    base_fee_per_gas: Vec<U256>,
    #[serde(default)]
    reward: Vec<Vec<U256>>,
}

impl Chain {
    pub(crate) const fn new(rpc: Rpc) -> Self {
        Self(rpc)
    }

    /// The chain's id.
    pub(crate) async fn id(&self) -> Result<u64, RpcError> {
        self.0.call("eth_chainId", json!([])).await.map(|id: U64| id.to())
    }

    /// Checks that the node is of the chain with this id. Another one may answer at its URL since the
    /// start.
    ///
    /// # Errors
    /// Also when it is of another chain: what it tells is of other coins, and of other nonces.
    pub(crate) async fn check_id(&self, id: u64) -> Result<(), RpcError> {
        let found = self.id().await?;
        if found == id {
            return Ok(());
        }
        let (method, reason) = ("eth_chainId", format!("it is {found}, not {id}"));
        Err(RpcError::Answer { method, reason })
    }

    /// Number of the latest block.
    pub(crate) async fn head(&self) -> Result<u64, RpcError> {
        self.0.call("eth_blockNumber", json!([])).await.map(|number: U64| number.to())
    }

    /// Count of an account's transactions, which is its next nonce.
    pub(crate) async fn count(&self, account: Address, at: At) -> Result<u64, RpcError> {
        let count: U64 = self.0.call("eth_getTransactionCount", json!([account, at.tag()])).await?;
        Ok(count.to())
    }

    /// The receipt of a transaction, if it is in a block.
    pub(crate) async fn receipt(&self, hash: B256) -> Result<Option<Receipt>, RpcError> {
        self.0.call("eth_getTransactionReceipt", json!([hash])).await
    }

    /// A block, if there is one of this number.
    pub(crate) async fn block(&self, number: u64) -> Result<Option<Block>, RpcError> {
        self.0.call("eth_getBlockByNumber", json!([U64::from(number), true])).await
    }

    /// Balance of an account in wei.
    pub(crate) async fn balance(&self, account: Address) -> Result<U256, RpcError> {
        self.0.call("eth_getBalance", json!([account, "latest"])).await
    }

    /// Balance of an account in a token's smallest units.
    pub(crate) async fn token_balance(
        &self,
        token: Address,
        account: Address,
    ) -> Result<U256, RpcError> {
        let account = account.into_word();
        let input = Bytes::from([&[0x70, 0xa0, 0x82, 0x31][..], &account[..]].concat());
        self.word(token, &input).await
    }

    /// Decimals that a token says it has.
    pub(crate) async fn token_decimals(&self, token: Address) -> Result<U256, RpcError> {
        self.word(token, &Bytes::from_static(&[0x31, 0x3c, 0xe5, 0x67])).await
    }

    /// A contract's answer of one word.
    async fn word(&self, to: Address, input: &Bytes) -> Result<U256, RpcError> {
        let (method, call) = ("eth_call", json!({ "to": to, "input": input }));
        let answer: Bytes = self.0.call(method, json!([call, "latest"])).await?;
        match answer.len() {
            32 => Ok(U256::from_be_slice(&answer)),
            _ => Err(RpcError::Answer { method, reason: format!("{to} is no such contract") }),
        }
    }

    /// Gas that a call takes.
    ///
    /// # Errors
    /// One that [`RpcError::is_revert`] when it would fail.
    pub(crate) async fn gas(&self, call: &Call<'_>) -> Result<u64, RpcError> {
        let Call { from, to, value, input } = call;
        let call = json!({ "from": from, "to": to, "value": value, "input": input });
        self.0.call("eth_estimateGas", json!([call])).await.map(|gas: U64| gas.to())
    }

    /// The fees of the moment.
    pub(crate) async fn market(&self) -> Result<Market, RpcError> {
        let method = "eth_feeHistory";
        let blocks = U64::from(FEE_BLOCKS);
        let history: FeeHistory = self.0.call(method, json!([blocks, "latest", [50]])).await?;
        let fee = |fee: &U256| u128::try_from(*fee).unwrap_or(u128::MAX);
        let base = history.base_fee_per_gas.last().map(fee);
        let base = base.ok_or_else(|| RpcError::Answer { method, reason: "no fees".to_owned() })?;
        let mut rewards: Vec<u128> =
            history.reward.iter().filter_map(|block| block.first().map(fee)).collect();
        rewards.sort_unstable();
        let priority = rewards.get(rewards.len() / 2).copied().unwrap_or_default();
        Ok(Market { base, priority: priority.max(PRIORITY_MIN) })
    }

    /// Hands a signed transaction to the network.
    pub(crate) async fn send(&self, raw: &Bytes) -> Result<(), RpcError> {
        self.0.call("eth_sendRawTransaction", json!([raw])).await.map(|_: Value| ())
    }

    /// Logs of a block among which are all transfers of these tokens, whatever the chain has at its
    /// height now.
    ///
    /// # Errors
    /// Also when the node does not have the block: some then answer as if it had no logs.
    pub(crate) async fn transfers(
        &self,
        block: &Block,
        tokens: &[Address],
    ) -> Result<Vec<Log>, RpcError> {
        if tokens.is_empty() {
            return Ok(Vec::new());
        }
        let (method, hash) = ("eth_getLogs", block.hash);
        let filter = json!({ "blockHash": hash, "address": tokens, "topics": [TRANSFER] });
        let mut logs: Vec<Log> = self.0.call(method, json!([filter])).await?;
        if logs.is_empty() && tokens.iter().any(|token| block.may_transfer(*token)) {
            logs = self.0.call(method, json!([{ "blockHash": hash }])).await?;
            // A filter that is not empty is of one log at least.
            if logs.is_empty() {
                let reason = format!("no logs of block {hash}, which has some");
                return Err(RpcError::Answer { method, reason });
            }
        }
        logs.retain(|log| !log.removed);
        Ok(logs)
    }

    /// The transaction of an account with a nonce, which must be used by the last of the blocks;
    /// the first is one where it perhaps was not. `None` if the node does not tell.
    pub(crate) async fn taker(
        &self,
        account: Address,
        nonce: u64,
        blocks: RangeInclusive<u64>,
    ) -> Result<Option<B256>, RpcError> {
        let (first, mut high) = blocks.into_inner();
        let mut low = first.min(high);
        let mut back = 64_u64;
        while low > 0 && self.has_used(account, nonce, low).await? {
            (high, low) = (low, low.saturating_sub(back));
            back = back.saturating_mul(4);
        }
        // Used after `high`, not after `low`, unless it is the first block.
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            match self.has_used(account, nonce, middle).await? {
                true => high = middle,
                false => low = middle,
            }
        }
        let Some(block) = self.block(high).await? else { return Ok(None) };
        let taker = block
            .transactions
            .iter()
            .find(|mined| mined.from == account && mined.nonce == U64::from(nonce));
        Ok(taker.map(|mined| mined.hash))
    }

    /// True if an account had used a nonce by a block. False, too, of a block whose state the node does
    /// not keep any more: most keep that of the last 128 alone.
    async fn has_used(&self, account: Address, nonce: u64, block: u64) -> Result<bool, RpcError> {
        match self.count(account, At::Block(block)).await {
            Err(RpcError::Node { .. }) => Ok(false),
            count => Ok(count? > nonce),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::tests::node;

    #[tokio::test]
    async fn who_has_taken_a_nonce_is_found_though_old_states_are_not_kept() {
        let account = Address::repeat_byte(7);
        let url = node(move |method, params| {
            let number = |at: usize| -> u64 {
                serde_json::from_value::<U64>(params[at].clone()).unwrap().to()
            };
            match method {
                "eth_getTransactionCount" => match number(1) {
                    0..900 => json!({"error": {"code": -32000, "message": "missing trie node"}}),
                    900..990 => json!("0x5"),
                    _ => json!("0x6"),
                },
                "eth_getBlockByNumber" if number(0) == 990 => {
                    let taker = json!({"hash": B256::repeat_byte(9), "from": account, "to": null,
                        "value": "0x0", "nonce": "0x5"});
                    json!({"hash": B256::ZERO, "timestamp": "0x1", "transactions": [taker]})
                }
                _ => Value::Null,
            }
        });
        let chain = Chain::new(Rpc::new(&url.await).unwrap());
        let taker = chain.taker(account, 5, 100..=1_000).await.unwrap();
        assert_eq!(taker, Some(B256::repeat_byte(9)));
    }

    #[tokio::test]
    async fn a_node_without_a_block_does_not_tell_that_it_has_no_transfers() {
        let (token, other) = (Address::repeat_byte(7), Address::repeat_byte(8));
        let log = json!({"address": token, "logIndex": "0x3", "data": B256::with_last_byte(9),
            "topics": [TRANSFER, B256::ZERO, B256::ZERO], "transactionHash": B256::ZERO});
        let block = |bloom: Bloom| -> Block {
            let block = json!({"hash": B256::ZERO, "timestamp": "0x1", "logsBloom": bloom,
                "transactions": []});
            serde_json::from_value(block).unwrap()
        };
        let mut bloom = Bloom::ZERO;
        bloom.accrue_raw_log(token, &[TRANSFER, B256::ZERO]);
        for (all, told) in [(json!([]), None), (json!([log]), Some(1))] {
            let url = node(move |_, params| match params[0].get("address") {
                Some(_) => json!([]),
                None => all.clone(),
            });
            let chain = Chain::new(Rpc::new(&url.await).unwrap());
            let transfers = chain.transfers(&block(bloom), &[token]).await;
            assert_eq!(transfers.ok().map(|logs| logs.len()), told);
            let of_other = chain.transfers(&block(bloom), &[other]).await.unwrap();
            assert!(of_other.is_empty(), "its filter says so");
            let full = block(Bloom::repeat_byte(0xff));
            assert!(chain.transfers(&full, &[token]).await.unwrap().is_empty(), "it says nothing");
        }
    }
}
