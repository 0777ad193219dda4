//! Steps of a payout over a node that is played.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use alloy::primitives::U256;
use rampart_connector::{Client, EdgeSettings, SecretSource, program};
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::sync::{Mutex, Semaphore};

use super::*;
use crate::chain::Chain;
use crate::fees::Fees;
use crate::key::Signer;
use crate::nonces::{Nonces, Spending};
use crate::rpc::Rpc;
use crate::rpc::tests::{node, request};
use crate::settings::{KeySettings, Settings};
use crate::transaction::Slot;

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("rampart-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// A file that holds a secret.
    fn secret(&self, name: &str, text: &str) -> SecretSource {
        let file = self.0.join(name);
        std::fs::write(&file, text).unwrap();
        SecretSource::File(file)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A connector over the node at this URL, with an edge that nobody calls.
fn worker(folder: &Folder, url: &str) -> Worker {
    let settings: Settings = program::read(std::path::Path::new("evm.toml")).unwrap();
    let token = folder.secret("edge.token", "rcn_abc");
    let edge = EdgeSettings { url: "http://127.0.0.1:9".to_owned(), token, ca_file: None };
    let key = KeySettings::Secret(folder.secret("key", &"46".repeat(32)));
    Worker {
        edge: Client::new(&edge).unwrap(),
        chain: Chain::new(Rpc::new(url).unwrap()),
        signer: Signer::open(&key, &folder.0, settings.chain.id).unwrap(),
        nonces: Mutex::new(Nonces::default()),
        deposits: None,
        settings,
    }
}

/// An edge that answers everything with this status, and the bodies that it is sent.
async fn edge(folder: &Folder, status: u16) -> (Client, mpsc::Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (tell, told) = mpsc::sync_channel(8);
    tokio::spawn(async move {
        loop {
            let (body, mut stream) = request(&listener).await;
            tell.send(serde_json::from_slice(&body).unwrap()).unwrap();
            let head = format!("HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: 2");
            stream.write_all(format!("{head}\r\n\r\n{{}}").as_bytes()).await.unwrap();
        }
    });
    let token = folder.secret("edge.token", "rcn_abc");
    (Client::new(&EdgeSettings { url, token, ca_file: None }).unwrap(), told)
}

/// A payout of 5 ETH with this checkpoint.
fn command(checkpoint: &Value) -> Command {
    let body = json!({"orderId": 7, "asset": "ETH", "amount": 5, "tag": null,
        "address": "0x52908400098527886E0F7030069857D2E4169EE7", "networkFeeMax": 0.01});
    let command = json!({"id": "c-1", "kind": "payout.send", "attempt": 2, "leaseToken": "lease",
        "checkpoint": checkpoint, "body": body});
    serde_json::from_value(command).unwrap()
}

/// The payout with a transaction of nonce 5 that this key has signed and nobody has sent, and its bytes.
async fn begun(worker: &Worker, signer: &Signer) -> (Command, Bytes) {
    let order = command(&Value::Null).body::<PayoutBody>().unwrap().order(&worker.settings);
    let slot = Slot { chain_id: worker.settings.chain.id, nonce: 5 };
    let unsigned = order.unwrap().transfer.transaction(slot, 21_000, Fees { max: 9, priority: 2 });
    let signed = signer.sign(unsigned).await.unwrap();
    let attempt = json!({"nonce": 5, "sinceBlock": 800, "signed": [signed]});
    (command(&json!({ "attempts": [attempt] })), signed)
}

fn payout<'a>(worker: &'a Worker, command: &'a Command) -> Payout<'a> {
    let (body, order, checkpoint) = read(worker, command).unwrap();
    let (renewed_at, signed_at) = (now(), now());
    let (sent_at, slot) = (None, None);
    Payout { worker, command, body, order, checkpoint, renewed_at, signed_at, sent_at, slot }
}

#[tokio::test]
async fn a_payout_is_sent_again_though_old_states_are_not_kept() {
    let folder = Folder::new("resend");
    let (tell, told) = mpsc::sync_channel(8);
    let url = node(move |method, params| match method {
        "eth_blockNumber" => json!("0x3e8"),
        "eth_getTransactionCount" if params[1] == "0x3e8" => json!("0x5"),
        "eth_getTransactionCount" => {
            json!({"error": {"code": -32000, "message": "missing trie node"}})
        }
        "eth_sendRawTransaction" => {
            tell.send(params[0].clone()).unwrap();
            json!("0x0")
        }
        _ => Value::Null,
    });
    let mut worker = worker(&folder, &url.await);
    worker.settings.assets.get_mut("ETH").unwrap().confirmations = 500;
    let (command, signed) = begun(&worker, &worker.signer).await;
    // Killed before it was sent.
    let mut payout = payout(&worker, &command);
    assert_eq!(payout.step().await.unwrap(), Step::Wait);
    assert_eq!(told.try_recv().unwrap(), json!(signed));
}

#[tokio::test]
async fn coins_that_are_on_their_way_pay_nobody_else() {
    let folder = Folder::new("coins");
    // Ten ETH.
    let url = node(|method, _| match method {
        "eth_getBalance" => json!("0x8ac7230489e80000"),
        _ => Value::Null,
    });
    let worker = worker(&folder, &url.await);
    let command = command(&Value::Null);
    let payout = payout(&worker, &command);
    let lacks = async |network_fee: U256| {
        let needed = worker.nonces.lock().await.needed(&payout.spending(network_fee));
        payout.lacks(needed, network_fee).await.unwrap()
    };
    let (nothing, wei) = (U256::ZERO, U256::from(1));
    assert_eq!(lacks(wei).await, None);
    worker.nonces.lock().await.hold("c-2", 5, payout.spending(nothing));
    assert_eq!(lacks(nothing).await, None, "it is just enough");
    let for_fee = "the account lacks coins for the network's fee".to_owned();
    assert_eq!(lacks(wei).await, Some(for_fee));
    worker.nonces.lock().await.hold("c-2", 5, payout.spending(wei));
    assert_eq!(lacks(nothing).await, Some("the account lacks ETH".to_owned()));
    worker.nonces.lock().await.mined("c-2");
    assert_eq!(lacks(wei).await, None, "the balance is without them");
}

#[tokio::test]
async fn a_payout_that_another_key_has_begun_is_sent_by_that_alone() {
    let folder = Folder::new("former");
    let former = KeySettings::Secret(folder.secret("former", &"47".repeat(32)));
    let former = Signer::open(&former, &folder.0, 1).unwrap();
    let (tell, told) = mpsc::sync_channel(8);
    let account = json!(former.address());
    // The account that pays now has used the nonce, for good.
    let url = node(move |method, params| match method {
        "eth_blockNumber" => json!("0x3e8"),
        "eth_getTransactionCount" if params[0] == account => json!("0x5"),
        "eth_getTransactionCount" => json!("0x6"),
        "eth_sendRawTransaction" => {
            tell.send(params[0].clone()).unwrap();
            json!("0x0")
        }
        _ => Value::Null,
    });
    let mut worker = worker(&folder, &url.await);
    worker.settings.payouts.stuck_seconds = 0;
    let (command, signed) = begun(&worker, &former).await;
    let mut payout = payout(&worker, &command);
    payout.hold().await;
    assert_eq!(payout.step().await.unwrap(), Step::Wait);
    assert_eq!(told.try_recv().unwrap(), json!(signed), "stuck as it is, it is sent as it was");
    let live = payout.checkpoint.live().unwrap();
    assert_eq!((live.signed.len(), live.taken_by), (1, None));
    let nonce = worker.nonces.lock().await.take("c-2", 5, Spending::default());
    assert_eq!(nonce, 5, "it holds no nonce of this account");
}

#[tokio::test]
async fn a_transfer_whose_gas_no_node_finds_gives_its_slot_back() {
    let folder = Folder::new("gas");
    let url = node(|method, _| match method {
        "eth_getBalance" => json!("0x8ac7230489e80000"),
        _ => json!({"error": {"code": -32000, "message": "gas required exceeds allowance"}}),
    });
    let mut worker = worker(&folder, &url.await);
    let (edge, told) = edge(&folder, 200).await;
    worker.edge = edge;
    let command = command(&Value::Null);
    assert_eq!(payout(&worker, &command).step().await.unwrap(), Step::Ended);
    assert_eq!(told.try_recv().unwrap()["outcome"], "retry");
}

#[tokio::test]
async fn a_nonce_that_is_used_on_another_chain_is_not_used() {
    let folder = Folder::new("chain");
    let key = KeySettings::Secret(folder.secret("key", &"46".repeat(32)));
    let ours = Signer::open(&key, &folder.0, 2).unwrap().address();
    // The same account has used the nonce there.
    let url = node(move |method, params| match method {
        "eth_blockNumber" => json!("0x3e8"),
        "eth_chainId" => json!("0x2"),
        "eth_getTransactionCount" => {
            let block = params[1].as_str().unwrap();
            json!(if block > "0x380" { "0x6" } else { "0x5" })
        }
        "eth_getBlockByNumber" => {
            let taker = json!({"hash": B256::repeat_byte(9), "from": ours, "to": null,
                "value": "0x0", "nonce": "0x5"});
            json!({"hash": B256::ZERO, "timestamp": "0x1", "transactions": [taker]})
        }
        _ => Value::Null,
    });
    let worker = worker(&folder, &url.await);
    let (command, _) = begun(&worker, &worker.signer).await;
    let mut payout = payout(&worker, &command);
    let held_up = payout.step().await.unwrap_err().to_string();
    assert_eq!(held_up, "eth_chainId: the answer cannot be read: it is 2, not 1");
    assert!(payout.checkpoint.live().is_some(), "another nonce would pay twice");
}

#[tokio::test]
async fn a_lost_lease_holds_no_nonce_and_releases_none() {
    let folder = Folder::new("lease");
    let url = node(|method, _| match method {
        "eth_getBalance" => json!("0x8ac7230489e80000"),
        "eth_estimateGas" => json!("0x5208"),
        "eth_feeHistory" => json!({"baseFeePerGas": ["0x1", "0x1"], "reward": [["0x1"]]}),
        "eth_chainId" => json!("0x1"),
        _ => json!("0x5"),
    });
    let mut worker = worker(&folder, &url.await);
    let (edge, told) = edge(&folder, 409).await;
    worker.edge = edge;
    let first = command(&Value::Null);
    let mut first = payout(&worker, &first);
    assert_eq!(first.step().await.unwrap(), Step::Ended);
    let checkpoint = told.try_recv().unwrap()["checkpoint"].take();
    let nonce = worker.nonces.lock().await.take("c-2", 5, Spending::default());
    assert_eq!(nonce, 5, "nobody waits for a block with the one that it did not use");
    worker.nonces.lock().await.release("c-2");
    // The checkpoint was stored after all, and the command is leased once more.
    let mut again = command(&checkpoint);
    again.attempt = 3;
    let again = payout(&worker, &again);
    again.hold().await;
    worker.nonces.lock().await.release(&first.holder());
    let nonce = worker.nonces.lock().await.take("c-2", 5, Spending::default());
    assert_eq!(nonce, 6, "the next lease holds it");
}

#[tokio::test]
async fn a_payout_whose_nonce_is_used_keeps_no_slot() {
    let folder = Folder::new("slot");
    // Final, and by a block that the node does not tell any more.
    let url = node(|method, _| match method {
        "eth_blockNumber" => json!("0x3e8"),
        "eth_getTransactionCount" => json!("0x6"),
        _ => Value::Null,
    });
    let worker = worker(&folder, &url.await);
    let (command, _) = begun(&worker, &worker.signer).await;
    let mut payout = payout(&worker, &command);
    let slots = Arc::new(Semaphore::new(1));
    payout.slot = Some(Arc::clone(&slots).try_acquire_owned().unwrap());
    assert_eq!(payout.step().await.unwrap(), Step::Wait);
    assert_eq!(slots.available_permits(), 1);
}

#[tokio::test]
async fn coins_are_on_their_way_again_when_their_block_is_replaced() {
    let folder = Folder::new("replaced");
    let is_mined = Arc::new(AtomicBool::new(true));
    let told = Arc::clone(&is_mined);
    let url = node(move |method, _| match (method, told.load(Ordering::SeqCst)) {
        ("eth_blockNumber", _) => json!("0x3e8"),
        ("eth_getTransactionReceipt", true) => {
            json!({"blockNumber": "0x3e8", "blockHash": B256::ZERO, "status": "0x1",
                "gasUsed": "0x5208", "effectiveGasPrice": "0x1", "logs": []})
        }
        ("eth_getTransactionCount", _) => json!("0x5"),
        _ => Value::Null,
    });
    let worker = worker(&folder, &url.await);
    let (command, _) = begun(&worker, &worker.signer).await;
    let mut payout = payout(&worker, &command);
    payout.hold().await;
    let needed = async || worker.nonces.lock().await.needed(&Spending::default()).native;
    let on_its_way = needed().await;
    assert!(on_its_way > payout.order.transfer.units, "coins and fee");
    for (mined, expected) in [(true, U256::ZERO), (false, on_its_way), (true, U256::ZERO)] {
        is_mined.store(mined, Ordering::SeqCst);
        assert_eq!(payout.step().await.unwrap(), Step::Wait);
        assert_eq!(needed().await, expected);
    }
}
