//! `rampart keys rotate|status|receipts|rotate-receipts`.

use std::time::Duration;

use clap::Subcommand;
use http::Method;
use serde_json::Value;

use super::{AdminClient, Body, Call, Page, StartupError, Target};
use crate::output;

/// Time between two looks at a rotation that is waited for.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

pub(super) const RECEIPT_COLUMNS: &str =
    "ID keyId, SIGNS signs, SIGNS FROM signsFrom, CREATED createdAt";

/// The ring of master keys, and the keys that sign receipts.
#[derive(Debug, Subcommand)]
pub(crate) enum Keys {
    /// Seal everything again under the first key of `keys.master`, in the background.
    Rotate {
        /// Return when it is finished, and say how far it is until then.
        #[arg(long)]
        wait: bool,
    },
    /// Show the ids of the keys, and how far a rotation is.
    Status,
    /// List the keys that sign receipts, newest first.
    Receipts(Page),
    /// Sign receipts with a new key, five minutes after it is published. Earlier ones stay published.
    RotateReceipts,
}

impl Call for Keys {
    fn call(&self, target: &Target) -> Result<(), StartupError> {
        match self {
            Self::Status => target.call("GET keys/rotation", &()),
            Self::Receipts(page) => target.list("receipt-keys", page, RECEIPT_COLUMNS),
            Self::RotateReceipts => target.call("POST receipt-keys/rotate", &()),
            Self::Rotate { wait: false } => target.call("POST keys/rotation", &()),
            Self::Rotate { wait: true } => target.run(async |o| finished(&o).await),
        }
    }
}

async fn finished(admin: &AdminClient) -> Result<Value, StartupError> {
    let mut status = admin.call(Method::POST, "keys/rotation", Body::None).await?;
    let mut looks = tokio::time::interval(LOOK_INTERVAL);
    while status["rotation"]["finishedAt"].is_null() {
        let rotation = &status["rotation"];
        let table = rotation["table"].as_str().unwrap_or_default();
        let keys = &status["partnerKeys"];
        output::note(format_args!(
            "values sealed again: {}, now {table}; partners' keys: {} of {}",
            rotation["resealed"], keys["current"], keys["total"]
        ));
        looks.tick().await;
        status = admin.get("keys/rotation").await?;
    }
    Ok(status)
}
