//! No coin is sent twice: the connector is killed at random moments and the chain reorganised, and
//! afterwards the chain itself is read. `make payouts` runs it in full.

use std::time::Duration;

use rampart_tests::anvil::{TREASURY, quantity};
use rampart_tests::chain_shop::{CONFIRMATIONS, ChainShop};
use rampart_tests::deadline::until;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;
use serde_json::{Value, json};
use tokio::time::timeout;

/// Longest life of a connector before it is killed, in milliseconds.
const LIFE_MILLISECONDS_MAX: u64 = 3_000;
/// Longest time after the last kill until every payout is complete.
const SETTLED_WITHIN: Duration = Duration::from_secs(600);

/// Counts of a run.
struct Scale {
    payouts: usize,
    kills: usize,
    reorganisations: usize,
}

impl Scale {
    /// The short form, or what `RAMPART_PAYOUTS` says: payouts, of which every second one costs a kill
    /// and every fortieth a reorganisation.
    fn chosen() -> Self {
        match number("RAMPART_PAYOUTS") {
            Some(payouts) => {
                let payouts = usize::try_from(payouts).unwrap();
                Self { payouts, kills: payouts / 2, reorganisations: payouts / 40 }
            }
            None => Self { payouts: 8, kills: 6, reorganisations: 2 },
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a test has no configuration to read it from")]
fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|number| number.parse().unwrap())
}

/// Numbers that follow from a seed (SplitMix64).
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}

/// A payout that must be on the chain once.
struct Payout {
    order: u64,
    wallet: String,
    /// The token's decimals; `None` for the chain's own coin.
    token: Option<u32>,
}

#[tokio::test]
async fn every_payout_is_on_the_chain_once_whatever_is_killed_or_reorganised() {
    let scale = Scale::chosen();
    let seed = number("RAMPART_SEED").unwrap_or_else(|| std::process::id().into());
    println!("RAMPART_SEED={seed}");
    let mut chance = Chance(seed);
    let shop = ChainShop::start().await;
    let mut payouts: Vec<Payout> = Vec::new();
    let every = scale.kills / scale.reorganisations.max(1);
    for kill in 0..scale.kills {
        // Orders are paid as the run goes on, so that kills meet every step of some payout.
        let wanted = scale.payouts * (kill + 1) / scale.kills - payouts.len();
        for _ in 0..wanted {
            payouts.push(buy(&shop, payouts.len()).await);
        }
        shop.pay(wanted).await;
        let connector = shop.connector("evm", &[]);
        let life = Duration::from_millis(chance.below(LIFE_MILLISECONDS_MAX));
        // Its life ends at no event: any moment must do.
        let _ = timeout(life, std::future::pending::<()>()).await;
        assert!(connector.status().is_none(), "{:?}", connector.err());
        connector.kill();
        if kill % every == every / 2 {
            shop.anvil.reorganise(1 + chance.below(CONFIRMATIONS - 1)).await;
        }
    }
    let connector = shop.connector("evm", &[]);
    for payout in &payouts {
        until("every payout is complete", SETTLED_WITHIN, async || {
            assert!(connector.status().is_none(), "{:?}", connector.err());
            (shop.read(payout.order).await["status"] == "completed").then_some(())
        })
        .await;
    }
    connector.kill();
    let attempts = check_chain(&shop, &payouts).await;
    check_books(&shop).await;
    let Scale { kills, reorganisations, .. } = scale;
    println!(
        "{} payouts, {kills} kills, {reorganisations} reorganisations: each on the chain once, in \
         {attempts} transactions of the account",
        payouts.len()
    );
}

/// Confirms a purchase to a wallet of its own; every third one is of the token.
async fn buy(shop: &ChainShop, index: usize) -> Payout {
    let wallet = format!("0x{:040x}", 0x00ab_0000_0000 + index);
    let (pair, token) = if index % 3 == 2 { ("USDC-EUR", Some(6)) } else { ("ETH-EUR", None) };
    let fiat = 60 + u32::try_from(index).unwrap();
    let order = shop.order(pair, &wallet, fiat).await;
    Payout { order, wallet, token }
}

/// Reads the whole chain: each wallet got its coins by one transaction, the one that its order names,
/// and nothing waits to be mined. The number of the account's transactions.
async fn check_chain(shop: &ChainShop, payouts: &[Payout]) -> usize {
    // What was handed to the network and forgotten would be mined by now.
    let end = shop.anvil.head().await + 2 * CONFIRMATIONS;
    until("more blocks come", Duration::from_secs(60), async || {
        (shop.anvil.head().await >= end).then_some(())
    })
    .await;
    let status = shop.anvil.call("txpool_status", json!([])).await;
    assert_eq!((&status["pending"], &status["queued"]), (&json!("0x0"), &json!("0x0")));
    let transactions = shop.anvil.transactions().await;
    for Payout { order, wallet, token } in payouts {
        let read = shop.read(*order).await;
        let amount: Decimal = read["cryptoAmount"]["amount"].to_string().parse().unwrap();
        let decimals = token.unwrap_or(18);
        let units = (amount * Decimal::from(10_u64.pow(decimals))).to_u128().unwrap();
        let sent: Vec<_> = transactions
            .iter()
            .filter(|(sent, receipt)| pays(sent, receipt, shop, wallet))
            .collect();
        assert_eq!(sent.len(), 1, "order {order}: {sent:?}");
        assert_eq!(read["blockchainInfo"]["transactionId"], sent[0].0["hash"], "order {order}");
        let balance = match token {
            Some(_) => shop.anvil.token_balance(&shop.token, wallet).await,
            None => shop.anvil.balance(wallet).await,
        };
        assert_eq!(balance, units, "order {order} to {wallet}");
    }
    transactions.iter().filter(|(sent, _)| sent["from"] == TREASURY).count()
}

/// True if a transaction of the chain, with this receipt, has moved coins to a wallet.
fn pays(sent: &Value, receipt: &Value, shop: &ChainShop, wallet: &str) -> bool {
    let native = sent["to"] == wallet && quantity(&sent["value"]) > 0;
    let token = sent["to"] == shop.token.as_str() && {
        let end = &wallet[2..];
        let mut logs = receipt["logs"].as_array().unwrap().iter();
        logs.any(|log| log["topics"][2].as_str().is_some_and(|topic| topic.ends_with(end)))
    };
    receipt["status"] == "0x1" && (native || token)
}

/// The books balance and fit the orders.
pub(super) async fn check_books(shop: &ChainShop) {
    let output = shop.edge.command(&["ledger", "check"]).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
