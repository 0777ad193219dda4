//! Commands: payments announced, transfers and refunds written into files.

use rampart_connector::{Command, Held, LeaseRequest, Outcome};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::folder::MessageId;
use crate::payers::Payers;
use crate::transfer::{Purpose, RefundBody, SendBody, Transfer, end_to_end_id};
use crate::{Bank, clock, pain};

const KINDS: [&str; 4] = ["payment.create", "payment.cancel", "payment.refund", "transfer.send"];
/// Longest wait for a command.
const WAIT_SECONDS: u16 = 20;
/// Time for which a command is nobody else's: a file is written within it many times over.
const LEASE_SECONDS: u16 = 300;

/// The checkpoint of a transfer: the file that it is in.
#[derive(Debug, Deserialize, Serialize)]
struct Checkpoint {
    /// The folder that knows whether the file has appeared.
    folder: String,
    message: MessageId,
}

/// The body of `payment.create`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CreateBody {
    payment_reference: String,
}

/// What is to be done about a command now.
enum Step {
    /// Tell the edge this.
    Report(Outcome),
    /// Write this transfer into a file, then tell the edge.
    Write(Box<Transfer>),
    /// Nothing: it is another folder's.
    Leave,
}

/// Carries out commands until the edge or the disk refuses.
///
/// # Errors
/// One sentence.
pub(crate) async fn serve(bank: &Bank) -> Result<(), String> {
    let request = LeaseRequest {
        max: bank.settings.transfers.batch_max,
        wait_seconds: WAIT_SECONDS,
        lease_seconds: LEASE_SECONDS,
        kinds: &KINDS,
    };
    let mut payers = Payers::default();
    loop {
        let commands = bank.edge.lease(&request).await.map_err(|error| error.to_string())?;
        let mut transfers = Vec::new();
        for command in commands {
            match step(bank, &mut payers, &command)? {
                Step::Report(outcome) => report(bank, &command, &outcome).await?,
                Step::Write(transfer) => transfers.push((command, *transfer)),
                Step::Leave => {}
            }
        }
        write(bank, transfers).await?;
    }
}

fn step(bank: &Bank, payers: &mut Payers, command: &Command) -> Result<Step, String> {
    let done = |result: Value| Ok(Step::Report(Outcome::Done { result }));
    let unreadable = |error: serde_json::Error| format!("{command:?} cannot be read: {error}");
    let purpose = match command.kind.as_str() {
        "payment.create" => {
            let body: CreateBody = command.body().map_err(unreadable)?;
            let reference = &body.payment_reference;
            let payee = bank.settings.account.payee(reference);
            return done(json!({ "providerReference": reference, "bankTransfer": payee }));
        }
        // Nobody is told to pay any more; what arrives all the same is given back.
        "payment.cancel" => return done(json!({})),
        "payment.refund" => Purpose::Refund,
        _ => Purpose::Sale,
    };
    let checkpoint: Option<Checkpoint> = command.checkpoint().map_err(unreadable)?;
    if let Some(Checkpoint { folder, message }) = checkpoint {
        if folder != bank.folder.id() {
            tracing::error!(?command, "it is in a file of another folder: start that one again");
            return Ok(Step::Leave);
        }
        let appeared = bank.folder.has_appeared(&message);
        if appeared.map_err(|error| format!("cannot read the folder: {error}"))? {
            return done(sent(purpose, command));
        }
    }
    let transfer = match purpose {
        Purpose::Sale => {
            let body: SendBody = command.body().map_err(unreadable)?;
            Transfer::of_sale(&bank.settings, &command.id, &body)
        }
        Purpose::Refund => {
            let body: RefundBody = command.body().map_err(unreadable)?;
            let account = &bank.settings.account;
            let payment = payers.payment(&bank.folder, account, &body.provider_reference);
            match payment.map_err(|error| format!("cannot read statements: {error}"))? {
                Some(line) => Transfer::of_refund(&bank.settings, &command.id, &body, &line),
                None => Err("no statement of this folder names the payment's one payer".to_owned()),
            }
        }
    };
    Ok(match transfer {
        Ok(transfer) => Step::Write(Box::new(transfer)),
        Err(reason) => Step::Report(Outcome::rejected(reason)),
    })
}

fn sent(purpose: Purpose, command: &Command) -> Value {
    json!({ "providerReference": end_to_end_id(purpose, &command.id) })
}

/// Writes transfers into one file. It appears when each of its commands has the file's name in its
/// checkpoint; if one of them was lost meanwhile, the name is void and the others get a new file.
async fn write(bank: &Bank, mut batch: Vec<(Command, Transfer)>) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot write a file of transfers: {error}");
    while !batch.is_empty() {
        let message = MessageId::new()?;
        let transfers: Vec<Transfer> = batch.iter().map(|(_, transfer)| transfer.clone()).collect();
        let account = &bank.settings.account;
        let text = pain::message(account, &transfers, &message, clock::now());
        bank.folder.prepare(&message, &text).map_err(failed)?;
        let checkpoint =
            Checkpoint { folder: bank.folder.id().to_owned(), message: message.clone() };
        let mut lost = None;
        for (index, (command, _)) in batch.iter().enumerate() {
            let held = bank.edge.checkpoint(command, &checkpoint, LEASE_SECONDS).await;
            if held.map_err(|error| error.to_string())? == Held::No {
                lost = Some(index);
                break;
            }
        }
        if let Some(index) = lost {
            bank.folder.void(&message).map_err(failed)?;
            batch.remove(index);
            continue;
        }
        bank.folder.publish(&message).map_err(failed)?;
        tracing::info!(message = message.as_str(), transfers = batch.len(), "a file is ready");
        for (command, transfer) in &batch {
            let result = json!({ "providerReference": transfer.end_to_end_id });
            report(bank, command, &Outcome::Done { result }).await?;
        }
        batch.clear();
    }
    Ok(())
}

/// Tells the edge. One that is no longer ours comes again, to whom has it then.
async fn report(bank: &Bank, command: &Command, outcome: &Outcome) -> Result<(), String> {
    if let Outcome::Rejected { reason, .. } = outcome {
        tracing::warn!(?command, reason, "a command is rejected");
    }
    match bank.edge.report(command, outcome).await.map_err(|error| error.to_string())? {
        Held::Yes => tracing::info!(?command, "reported"),
        Held::No => tracing::warn!(?command, "the lease was lost; it comes again"),
    }
    Ok(())
}
