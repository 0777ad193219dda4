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
    currency: String,
    payment_reference: String,
}

/// The next step of a command.
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
    let purpose = match command.kind.as_str() {
        "payment.create" => {
            let body: CreateBody = match command.body() {
                Ok(body) => body,
                Err(error) => return Ok(Step::Report(Outcome::rejected(unreadable(&error)))),
            };
            let (account, reference) = (&bank.settings.account, &body.payment_reference);
            // A route leads a payment method here, whatever the currency.
            if let Err(reason) = account.takes(&body.currency) {
                return Ok(Step::Report(Outcome::rejected(reason)));
            }
            let payee = account.payee(reference);
            return done(json!({ "providerReference": reference, "bankTransfer": payee }));
        }
        // Nobody is told to pay any more; what arrives all the same is given back.
        "payment.cancel" => return done(json!({})),
        "payment.refund" => Purpose::Refund,
        _ => Purpose::Sale,
    };
    let checkpoint = match command.checkpoint::<Checkpoint>() {
        Ok(checkpoint) => checkpoint,
        // A file may have it.
        Err(error) => {
            tracing::error!(?command, %error, "a checkpoint cannot be read");
            return Ok(Step::Leave);
        }
    };
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
            let body = command.body::<SendBody>().map_err(|error| unreadable(&error));
            body.and_then(|body| Transfer::of_sale(&bank.settings, &command.id, &body))
        }
        Purpose::Refund => refund(bank, payers, command)?,
    };
    Ok(match transfer {
        Ok(transfer) => Step::Write(Box::new(transfer)),
        Err(reason) => Step::Report(Outcome::rejected(reason)),
    })
}

/// The transfer of a refund; within it, the reason that there is none.
///
/// # Errors
/// One sentence when statements cannot be read.
fn refund(
    bank: &Bank,
    payers: &mut Payers,
    command: &Command,
) -> Result<Result<Transfer, String>, String> {
    let body: RefundBody = match command.body() {
        Ok(body) => body,
        Err(error) => return Ok(Err(unreadable(&error))),
    };
    let account = &bank.settings.account;
    let payment = payers.payment(&bank.folder, account, &body.provider_reference);
    Ok(match payment.map_err(|error| format!("cannot read statements: {error}"))? {
        Some(line) => Transfer::of_refund(&bank.settings, &command.id, &body, &line),
        None => Err("no statement of this folder names the payment's one payer".to_owned()),
    })
}

/// The reason of a command that cannot be read. It must not stop the others.
fn unreadable(error: &serde_json::Error) -> String {
    format!("the command cannot be read: {error}")
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::tests::Place;
    use crate::statements::tests::bank;
    use crate::transfer::tests::COMMAND;

    /// URL of an edge that nobody calls.
    const EDGE: &str = "http://127.0.0.1:9";

    fn step_of(bank: &Bank, kind: &str, checkpoint: &Value, body: &Value) -> Step {
        let command = json!({"id": COMMAND, "kind": kind, "attempt": 1, "leaseToken": "lease",
            "checkpoint": checkpoint, "body": body});
        let command: Command = serde_json::from_value(command).unwrap();
        step(bank, &mut Payers::default(), &command).unwrap()
    }

    #[tokio::test]
    async fn a_command_that_cannot_be_read_stops_no_other_one() {
        let place = Place::make();
        let bank = bank(&place, EDGE);
        for kind in ["payment.create", "payment.refund", "transfer.send"] {
            let rejected = step_of(&bank, kind, &Value::Null, &json!({}));
            assert!(matches!(rejected, Step::Report(Outcome::Rejected { .. })), "{kind}");
        }
        let begun = step_of(&bank, "transfer.send", &json!({ "file": 7 }), &json!({}));
        assert!(matches!(begun, Step::Leave), "a file may have it");
    }

    #[tokio::test]
    async fn a_payer_is_told_the_account_for_its_own_currency_alone() {
        let place = Place::make();
        let bank = bank(&place, EDGE);
        let create = |currency: &str| {
            let body = json!({"orderId": 7, "amount": 100, "currency": currency,
                "paymentReference": "1742980455013377"});
            step_of(&bank, "payment.create", &Value::Null, &body)
        };
        let iban = &bank.settings.account.iban;
        let told = create("EUR");
        assert!(matches!(told, Step::Report(Outcome::Done { result })
            if result["bankTransfer"]["iban"] == *iban));
        let refused = create("GBP");
        assert!(matches!(refused, Step::Report(Outcome::Rejected { reason, .. })
            if reason == "the account is in EUR, not in GBP"));
    }
}
