//! A chain in a process of its own: anvil (`deploy/anvil`), a real node of Ethereum.

use std::process::Command;

use serde_json::{Value, json};

use crate::caller::Protocol;
use crate::deadline::{SOON, until};
use crate::process::Process;
use crate::repository::root;

/// The first of its accounts, which has 10,000 coins.
pub const TREASURY: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
/// That account's private key, known to everybody.
pub const TREASURY_KEY: &str = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
/// Its second account.
pub const CUSTOMER: &str = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";
/// Id of the chain.
pub const CHAIN_ID: u64 = 31_337;
/// A token of 6 decimals whose maker owns a million millions of it: balances by address in storage,
/// `transfer`, `balanceOf`, `decimals`, and the event `Transfer`.
const TOKEN: &str = concat!(
    // Gives the maker all of it, and returns the contract.
    "670de0b6b3a76400003355608860155f3960885ff3",
    // Chooses by selector.
    "5f3560e01c8063a9059cbb14602557806370a082311460705763313ce56714607b575f5ffd",
    // transfer: fails beyond the sender's balance, moves it, logs it, returns true.
    "5b6024353354818110608457819003335560043580548201815590",
    "5f52337fddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef60205fa3",
    "60015f5260205ff3",
    // balanceOf, decimals, failure.
    "5b600435545f5260205ff35b60065f5260205ff35b5f5ffd",
);

/// The node. It ends when it is dropped.
pub struct Anvil {
    /// URL of its JSON-RPC.
    pub url: String,
    http: reqwest::Client,
    _process: Process,
}

impl Anvil {
    /// A new chain with two blocks a second.
    pub async fn start() -> Self {
        let mut command = Command::new(root().join("deploy/anvil"));
        command.args(["--port", "0", "--block-time", "0.5", "--no-request-size-limit"]);
        let process = Process::spawn(command);
        let address = process.prints("Listening on ").await;
        let http = Protocol::Http1.client();
        Self { url: format!("http://{address}"), http, _process: process }
    }

    /// The result of a call.
    pub async fn call(&self, method: &str, params: Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let request = self.http.post(&self.url).header("content-type", "application/json");
        let answer = request.body(body.to_string()).send().await.unwrap();
        let mut answer: Value = answer.json().await.unwrap();
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].take()
    }

    /// Number of the latest block.
    pub async fn head(&self) -> u64 {
        u64::try_from(quantity(&self.call("eth_blockNumber", json!([])).await)).unwrap()
    }

    /// Balance of an account in wei.
    pub async fn balance(&self, account: &str) -> u128 {
        quantity(&self.call("eth_getBalance", json!([account, "latest"])).await)
    }

    /// Balance of an account in a token's smallest units.
    pub async fn token_balance(&self, token: &str, account: &str) -> u128 {
        let input = format!("0x70a08231{}", word(account));
        let call = json!([{"to": token, "data": input}, "latest"]);
        quantity(&self.call("eth_call", call).await)
    }

    /// Sends so many wei from one of its accounts, in a block when this returns. The hash.
    pub async fn send(&self, from: &str, to: &str, wei: u128) -> String {
        let request = json!({"from": from, "to": to, "value": format!("{wei:#x}")});
        self.mined(request).await["transactionHash"].as_str().unwrap().to_owned()
    }

    /// Sends so many units of a token from one of its accounts, in a block when this returns.
    pub async fn send_token(&self, token: &str, from: &str, to: &str, units: u128) -> String {
        let input = format!("0xa9059cbb{}{units:064x}", word(to));
        let request = json!({"from": from, "to": token, "data": input});
        self.mined(request).await["transactionHash"].as_str().unwrap().to_owned()
    }

    /// Makes a token that belongs to the treasury; its address.
    pub async fn token(&self) -> String {
        let request = json!({"from": TREASURY, "data": format!("0x{TOKEN}")});
        self.mined(request).await["contractAddress"].as_str().unwrap().to_owned()
    }

    /// The receipt of a transaction that is sent now.
    async fn mined(&self, request: Value) -> Value {
        let hash = self.call("eth_sendTransaction", json!([request])).await;
        let receipt = until("the transaction is in a block", SOON, async || {
            let receipt = self.call("eth_getTransactionReceipt", json!([hash])).await;
            (!receipt.is_null()).then_some(receipt)
        })
        .await;
        assert_eq!(receipt["status"], "0x1", "{receipt}");
        receipt
    }

    /// Replaces the latest blocks, this many, by empty ones. Their transactions are forgotten.
    pub async fn reorganise(&self, blocks: u64) {
        self.call("anvil_reorg", json!([blocks, []])).await;
    }

    /// Every transaction of the chain, with its receipt.
    pub async fn transactions(&self) -> Vec<(Value, Value)> {
        let mut found = Vec::new();
        for number in 0..=self.head().await {
            let block =
                self.call("eth_getBlockByNumber", json!([format!("{number:#x}"), true])).await;
            for transaction in block["transactions"].as_array().unwrap() {
                let hash = json!([transaction["hash"]]);
                let receipt = self.call("eth_getTransactionReceipt", hash).await;
                found.push((transaction.clone(), receipt));
            }
        }
        found
    }
}

/// A number in hex.
pub fn quantity(value: &Value) -> u128 {
    let digits = value.as_str().unwrap().trim_start_matches("0x").trim_start_matches('0');
    u128::from_str_radix(if digits.is_empty() { "0" } else { digits }, 16).unwrap()
}

/// An address as a word of an input.
fn word(address: &str) -> String {
    format!("{:0>64}", address.trim_start_matches("0x"))
}
