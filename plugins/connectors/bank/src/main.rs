//! A connector of a bank account: camt.053 statements in, pain.001 files out.
//!
//! Whoever moves files between the bank and this program's folder, such as an EBICS client, is
//! neither trusted with tokens nor known here. Each statement's lines become events; transfers and
//! refunds become files, of which none ever names a transfer that another one has.

mod account;
mod clock;
mod facts;
mod folder;
mod pain;
mod payers;
mod settings;
mod statements;
mod transfer;
mod transfers;
mod uploads;

use std::process::ExitCode;
use std::sync::Arc;

use rampart_connector::{Client, program};

use self::folder::Folder;
use self::settings::Settings;

/// The connector: an edge, an account, and the folder that the account's files pass through.
#[derive(Debug)]
pub(crate) struct Bank {
    edge: Client,
    folder: Folder,
    settings: Settings,
}

/// Checks settings, folder and edge, and changes nothing.
async fn check(settings: Settings) -> Result<(), String> {
    settings.check()?;
    folder::check(&settings.folder)?;
    let edge = Client::new(&settings.edge).map_err(|error| error.to_string())?;
    if let Some(uploads) = &settings.uploads {
        uploads.token()?;
    }
    edge.check().await
}

/// Serves until something cannot go on.
async fn serve(settings: Settings) -> Result<(), String> {
    settings.check()?;
    let edge = Client::new(&settings.edge).map_err(|error| error.to_string())?;
    let folder = Folder::open(&settings.folder)?;
    let bank = Arc::new(Bank { edge, folder, settings });
    let listening = async {
        match &bank.settings.uploads {
            Some(uploads) => uploads::listen(Arc::clone(&bank), uploads).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        ended = transfers::serve(&bank) => ended,
        ended = statements::watch(&bank) => ended,
        ended = listening => ended,
    }
}

fn main() -> ExitCode {
    program::run(check, serve)
}
