//! Commands that have ended.

use rampart_types::{ClientId, OrderId, UserId, decimal};
use rust_decimal::Decimal;
use serde_json::Value;
use uuid::Uuid;

use super::bank_transfer::BankTransfer;
use super::commands::{self, CommandKind, body_context};
use super::provider_page;
use crate::Core;
use crate::platform::error::Result;

/// A command that has ended.
pub(super) struct Finished {
    pub(super) client: ClientId,
    pub(super) order: Option<OrderId>,
    pub(super) user: Option<UserId>,
    pub(super) kind: String,
    pub(super) connector: String,
    /// True if pages show the connector's form for cards.
    pub(super) has_card_form: bool,
    /// Asset of its leg or of its pool.
    pub(super) asset: Option<String>,
    pub(super) command: Uuid,
    /// As the connector got it.
    pub(super) sealed_body: Vec<u8>,
    /// False for one that was rejected.
    pub(super) is_done: bool,
    pub(super) result: Value,
    pub(super) reason: Option<String>,
}

impl Finished {
    /// True if it gives money back.
    pub(super) fn is_refund(&self) -> bool {
        self.kind == CommandKind::PaymentRefund.as_str()
    }

    /// True if it sends money or coins.
    pub(super) fn sends(&self) -> bool {
        CommandKind::from_name(&self.kind).is_some_and(CommandKind::sends)
    }

    /// True if its result names an account that no payer can be told, or a page or a form that none is
    /// led to.
    pub(super) fn is_unpayable(&self) -> bool {
        self.kind == CommandKind::PaymentCreate.as_str()
            && (BankTransfer::is_wrong(&self.result)
                || provider_page::is_wrong(&self.result, self.has_card_form))
    }

    /// Opens the command's body.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub(super) fn body(&self, core: &Core) -> Result<Value> {
        let context = body_context(self.client.uuid(), self.command);
        commands::open(&core.cipher(self.client), &context, &self.sealed_body)
    }

    /// The amount that the command names; `None` where its body names none, or was deleted.
    ///
    /// # Errors
    /// When the body cannot be opened.
    pub(super) fn amount(&self, core: &Core) -> Result<Option<Decimal>> {
        if self.sealed_body.is_empty() {
            return Ok(None);
        }
        Ok(decimal::from_number(&self.body(core)?["amount"]))
    }
}
