//! Pays out and takes coins of Ethereum and chains like it: native coins and ERC-20 tokens, over a
//! node's JSON-RPC. See `plugins/CONNECTORS.md`.

mod amounts;
mod chain;
mod deposits;
mod fees;
mod key;
mod nonces;
mod payout;
mod rpc;
mod settings;
mod state;
mod transaction;
mod work;

use std::process::ExitCode;
use std::sync::Arc;

use alloy::primitives::U256;
use rampart_connector::{Client, program};
use tokio::sync::Mutex;

use crate::chain::Chain;
use crate::deposits::Deposits;
use crate::key::Signer;
use crate::nonces::Nonces;
use crate::rpc::{Rpc, RpcError};
use crate::settings::Settings;
use crate::work::Worker;

fn main() -> ExitCode {
    program::run(check, serve)
}

/// Checks that everything that the configuration names is there, and is what it says.
async fn check(settings: Settings) -> Result<(), String> {
    settings.validate()?;
    let worker = open(settings)?;
    worker.edge.check().await?;
    check_chain(&worker).await?;
    let address = worker.signer.address();
    let balance = worker.chain.balance(address).await.map_err(|error| error.to_string())?;
    println!("{address} has {balance} wei");
    Ok(())
}

async fn serve(settings: Settings) -> Result<(), String> {
    settings.validate()?;
    let worker = Arc::new(open(settings)?);
    // A wrong chain would take coins that nobody is paid with.
    while let Err(error) = check_chain(&worker).await {
        if !error.starts_with("the node") {
            return Err(error);
        }
        tracing::warn!(error, "waiting for the node");
        rampart_connector::pace::pause(worker.settings.chain.poll()).await;
    }
    tracing::info!(address = %worker.signer.address(), "serving");
    match &worker.deposits {
        Some(deposits) => {
            deposits.begin(&worker.settings, &worker.chain).await;
            tokio::select! {
                ended = worker.run() => ended,
                () = deposits.watch(&worker.settings, &worker.chain, &worker.edge) => Ok(()),
            }
        }
        None => worker.run().await,
    }
}

fn open(settings: Settings) -> Result<Worker, String> {
    let edge = Client::new(&settings.edge).map_err(|error| error.to_string())?;
    let rpc = Rpc::new(&settings.chain.rpc_url).map_err(|error| format!("chain: {error}"))?;
    let signer = Signer::open(&settings.key, &settings.state_folder, settings.chain.id)?;
    let deposits = settings.deposits.as_ref();
    let deposits = deposits.map(|deposits| Deposits::open(deposits, &settings.state_folder));
    let (deposits, chain, nonces) = (deposits.transpose()?, Chain::new(rpc), Nonces::default());
    Ok(Worker { settings, edge, chain, signer, nonces: Mutex::new(nonces), deposits })
}

/// Checks that the node's chain and the tokens on it are the configured ones. Reasons that begin with
/// "the node" pass.
async fn check_chain(worker: &Worker) -> Result<(), String> {
    let Worker { settings, chain, .. } = worker;
    let silent = |error: RpcError| format!("the node: {error}");
    let id = chain.id().await.map_err(silent)?;
    if id != settings.chain.id {
        return Err(format!("chain.id: the node's is {id}"));
    }
    for (code, asset) in &settings.assets {
        let Some(token) = asset.contract else { continue };
        let decimals = chain.token_decimals(token).await.map_err(|error| match error {
            RpcError::Answer { reason, .. } => format!("assets.{code}.contract: {reason}"),
            passing => silent(passing),
        })?;
        if decimals != U256::from(asset.decimals) {
            return Err(format!("assets.{code}.decimals: the token's are {decimals}"));
        }
    }
    Ok(())
}
