//! The order that a confirm asks for, and the one that its quote has become before.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use uuid::Uuid;

use super::context::ConfirmContext;
use super::request::Terms;
use super::terms::OfferTerms;
use crate::Core;
use crate::endpoint::SavedAnswer;
use crate::money::connectors::commands::{Command, CommandKind, SealedCommand, Target};
use crate::money::connectors::sandbox::timing;
use crate::money::connectors::screening::{SealedScreening, Wallet};
use crate::platform::error::{Error, Result};
use crate::trading::catalogue::Direction;
use crate::trading::orders::column::id;
use crate::trading::orders::insert::NewOrderRow;
use crate::trading::orders::payment_link::payment_url;
use crate::trading::routing::{self, Settlement};
use crate::trading::sandbox::Scenario;
use rampart_types::{ClientId, JsonDecimal, OrderId, OrderKey, QuoteId};

/// An order about to be made.
pub(super) struct NewOrder<'a> {
    context: &'a ConfirmContext,
    offer_id: Option<Uuid>,
    partner_reference: Option<&'a str>,
    return_url: Option<&'a str>,
    callback_url: Option<&'a str>,
    policy_decisions: Value,
    settlement: Settlement,
    pub(super) expires_at: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
}

impl<'a> NewOrder<'a> {
    /// The order that the confirm asks for. What the offer says goes before what the request says,
    /// except for the partner's own identifier.
    pub(super) fn new(
        core: &Core,
        context: &'a ConfirmContext,
        offer: Option<&'a OfferTerms>,
    ) -> Result<Self> {
        let (request, now) = (&context.request, core.clock.now());
        let stated = match &request.terms {
            Terms::Stated { return_url, callback_url } => (Some(return_url), callback_url.as_ref()),
            Terms::Offer { return_url, callback_url, .. } => {
                (return_url.as_ref(), callback_url.as_ref())
            }
        };
        let (return_url, callback_url) =
            (stated.0.map(|url| url.as_str()), stated.1.map(|url| url.as_str()));
        let catalogue = &context.client.catalogue;
        let method = catalogue
            .payment_method(&context.quote.payment_method)
            .ok_or_else(|| Error::invariant("find the payment method that was checked"))?;
        // A bank transfer may take as long as it takes.
        let timed = method.kind.has_time_limit();
        let time_to_pay = TimeDelta::seconds(i64::from(method.expiration_period_seconds));
        let partner_reference = request
            .partner_reference
            .as_ref()
            .map(|reference| reference.as_str())
            .or(offer.and_then(|offer| offer.partner_reference.as_deref()));
        let settlement = routing::settlement_of(&context.client, &context.quote);
        Ok(Self {
            context,
            offer_id: offer.map(|offer| offer.offer_id),
            partner_reference,
            settlement,
            return_url: offer.and_then(|offer| offer.return_url.as_deref()).or(return_url),
            callback_url: offer.and_then(|offer| offer.callback_url.as_deref()).or(callback_url),
            policy_decisions: decisions(&context.quote.policy_decisions, offer),
            expires_at: timed.then(|| now + time_to_pay),
            now,
        })
    }

    /// All that is written of it under this number, and the answer that is saved with it.
    pub(super) fn row(
        &self,
        core: &Core,
        id: OrderId,
        answer: Option<SavedAnswer>,
    ) -> Result<NewOrderRow> {
        let ConfirmContext { client, user, account, quote, request, destination } = self.context;
        Ok(NewOrderRow {
            client_id: client.id().uuid(),
            offer_id: self.offer_id,
            user_id: user.map(|user| user.uuid()),
            account_id: account.id(),
            wallet_address: destination.address.as_str().to_owned(),
            destination_tag: destination.tag.as_ref().map(ToString::to_string),
            wallet_type: request.wallet_type.as_str(),
            return_url: self.return_url.map(str::to_owned),
            callback_url: self.callback_url.map(str::to_owned),
            terms_digest: self.context.terms_digest().to_vec(),
            policy_decisions: self.policy_decisions.clone(),
            expires_at: self.expires_at,
            command: self.payment(core, id)?,
            screening: self.screening(core, id)?,
            answer,
            ..NewOrderRow::for_quote(
                core,
                &client.catalogue,
                quote,
                id,
                self.partner_reference,
                self.now,
            )?
        })
    }
}

impl NewOrder<'_> {
    /// The command that has the order's payment made. Of one with a magic value, the sandbox tells
    /// after a step what happens to it.
    fn payment(&self, core: &Core, id: OrderId) -> Result<Option<SealedCommand>> {
        let ConfirmContext { client, quote, .. } = self.context;
        let (target, body, report_ms) = match self.settlement {
            Settlement::Nobody => return Ok(None),
            Settlement::Connectors => {
                let method = quote.payment_method.clone();
                let target = Target::Method { direction: Direction::In, method };
                (target, self.payment_body(core, id)?, None)
            }
            Settlement::Sandbox => {
                let scenario = Scenario::detect(self.partner_reference, quote.fiat);
                let report_ms = scenario.map(|_| timing::step_ms(core));
                // It is done as it is commanded: nobody gets a body.
                (Target::sandbox(), Value::Null, report_ms)
            }
        };
        let command = Command {
            client: client.id(),
            order: Some(id),
            user: None,
            kind: CommandKind::PaymentCreate,
            idempotency_key: format!("payment/{id}"),
            target,
            body,
        };
        Ok(Some(command.seal(core)?.reported_after(report_ms)))
    }

    /// The members of the command.
    fn payment_body(&self, core: &Core, id: OrderId) -> Result<Value> {
        let ConfirmContext { client, quote, .. } = self.context;
        let page = payment_url(core, OrderKey { client: client.id(), order: id })?;
        Ok(json!({
            "partner": &*client.tenant.slug,
            "orderId": id,
            "amount": JsonDecimal(quote.fiat),
            "currency": quote.fiat_currency(),
            "method": quote.payment_method,
            "paymentReference": id.to_string(),
            "returnUrl": page,
            "cancelUrl": page,
            "expiresAt": self.expires_at,
        }))
    }

    /// The screening of the order's wallet.
    fn screening(&self, core: &Core, id: OrderId) -> Result<Option<SealedScreening>> {
        let ConfirmContext { client, quote, destination, .. } = self.context;
        let asset = quote.crypto_currency().to_string();
        let tag = destination.tag.as_ref().map(ToString::to_string);
        let address = destination.address.as_str();
        let wallet = Wallet { asset: &asset, address, tag: tag.as_deref() };
        SealedScreening::of_wallet(core, &client.tenant, id, self.partner_reference, wallet)
    }
}

/// The decisions of the policies of quote and offer.
fn decisions(of_quote: &Value, offer: Option<&OfferTerms>) -> Value {
    let of_offer = offer.and_then(|offer| offer.signature_decision.as_ref());
    of_quote.as_array().into_iter().flatten().chain(of_offer).cloned().collect()
}

/// The order that a quote has become.
pub(super) struct ExistingOrder {
    pub(super) order_id: OrderId,
    pub(super) expires_at: Option<DateTime<Utc>>,
    pub(super) terms_digest: Vec<u8>,
}

impl ExistingOrder {
    /// The order that the quote has become before, if it has.
    pub(super) async fn find(
        core: &Core,
        client: ClientId,
        quote: QuoteId,
    ) -> Result<Option<Self>> {
        let row = sqlx::query!(
            "select order_id, expires_at, terms_digest from buy_order \
             where client_id = $1 and quote_id = $2",
            client.uuid(),
            quote.uuid(),
        )
        .fetch_optional(&core.db)
        .await?;
        row.map(|row| {
            let order_id = id(row.order_id)?;
            Ok(Self { order_id, expires_at: row.expires_at, terms_digest: row.terms_digest })
        })
        .transpose()
    }
}
