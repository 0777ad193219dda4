//! A confirm whose quote is open: what it is refused for, and how it becomes an order.

use super::account::NamedAccount;
use super::order::{ExistingOrder, NewOrder};
use super::request::{Confirm, OFFER, Terms};
use super::terms::{self, Destination, OfferTerms};
use super::{Confirmed, checks};
use crate::Core;
use crate::auth::caller::Client;
use crate::endpoint::{ClaimedKey, key_lost};
use crate::http::reply::Reply;
use crate::platform::error::{Code, Error, Refusal, Result, Violation};
use crate::trading::limits;
use crate::trading::orders::insert::{InsertOutcome, ORDER_ID_TRIES_MAX};
use crate::trading::orders::status::Cause;
use crate::trading::quotes::{Quote, token};
use rampart_types::{OrderId, OrderKey, UserId};

/// A confirm whose quote is open.
pub(super) struct ConfirmContext {
    pub(super) client: Client,
    /// The owner of the order.
    pub(super) user: Option<UserId>,
    /// The account that pays.
    pub(super) account: NamedAccount,
    pub(super) quote: Quote,
    pub(super) request: Confirm,
    pub(super) destination: Destination,
}

/// The order's user as limits know it.
pub(super) enum UsageCheck<'a> {
    /// The statement that makes the order decides.
    Deferred,
    /// As read, for an order of a user.
    Read(Option<&'a limits::Usage>),
}

impl ConfirmContext {
    /// Preconditions of a new order that do not hold, with the account as it was read last.
    pub(super) fn validate(
        &self,
        core: &Core,
        offer: Option<&OfferTerms>,
        account: &NamedAccount,
        usage: UsageCheck<'_>,
    ) -> Refusal {
        let mut refusal = Refusal::new();
        checks::market(&self.client, &self.quote, core.clock.now(), &mut refusal);
        checks::routes(&self.client, &self.quote, &mut refusal);
        if self.user.is_none() {
            checks::guest(core, &self.client, &self.quote, &mut refusal);
        }
        account.check(&self.quote, &mut refusal);
        let limit_amount = || limits::limit_amount(core, &self.client.catalogue, &self.quote);
        match usage {
            UsageCheck::Deferred if self.user.is_some() && limit_amount().is_none() => {
                checks::no_limit_rate(&mut refusal);
            }
            UsageCheck::Deferred => {}
            UsageCheck::Read(usage) => {
                checks::may_trade(usage, &mut refusal);
                if let Some(usage) = usage {
                    checks::limits(core, &self.client, &self.quote, usage, account, &mut refusal);
                }
            }
        }
        if matches!(self.request.terms, Terms::Offer { .. }) {
            match offer.filter(|offer| offer.is_for(self.user)) {
                Some(offer) => {
                    offer.check(&self.quote, &self.destination, core.clock.now(), &mut refusal);
                }
                None => refusal.add_of_member(Code::OfferNotFound, OFFER),
            }
        }
        refusal
    }

    /// Checks of the user that the partner wants done before the payment (ER011).
    pub(super) async fn check_gate(&self, core: &Core, refusal: &mut Refusal) -> Result<()> {
        match self.user {
            Some(user) => checks::gate(core, &self.client, user, &self.quote, refusal).await,
            None => Ok(()),
        }
    }

    /// The same, the user's usage included.
    pub(super) async fn refusal(
        &self,
        core: &Core,
        offer: Option<&OfferTerms>,
        account: &NamedAccount,
    ) -> Result<Refusal> {
        let Some(user) = self.user else {
            return Ok(self.validate(core, offer, account, UsageCheck::Deferred));
        };
        let usage = limits::usage(core, self.client.key_of(user)).await?;
        Ok(self.validate(core, offer, account, UsageCheck::Read(usage.as_ref())))
    }

    /// Makes the order, with the answer saved under its key.
    pub(super) async fn place(
        &self,
        core: &Core,
        offer: Option<&OfferTerms>,
        key: Option<(&ClaimedKey, impl Fn(Confirmed) -> Result<Reply>)>,
    ) -> Result<Confirmed> {
        let order = NewOrder::new(core, self, offer)?;
        for _ in 0..ORDER_ID_TRIES_MAX {
            let id = OrderId::from_entropy(core.clock.random_u64()?);
            let order_key = OrderKey { client: self.client.id(), order: id };
            let confirmed = Confirmed::new(core, order_key, order.expires_at)?;
            let answer = match &key {
                Some((key, answer)) => Some(key.answer(core, &answer(confirmed.clone())?)?),
                None => None,
            };
            match core.order_inserts.submit(order.row(core, id, answer)?).await? {
                InsertOutcome::Placed => {
                    Cause::count(core, [Cause::Confirmed]);
                    if let Some((key, _)) = &key {
                        key.mark_saved();
                    }
                    return Ok(confirmed);
                }
                InsertOutcome::Conflict => {
                    if let Some(confirmed) = self.existing_order(core).await? {
                        return Ok(confirmed);
                    }
                    // It was the number that was taken.
                }
                InsertOutcome::KeyLost => return Err(key_lost(key.map(|(key, _)| key))),
                InsertOutcome::QuoteExpired => {
                    let (code, field) = (Code::QuoteExpired, Some(token::MEMBER));
                    let over = Violation { code, field, detail: None };
                    return self.resolve_conflict(core, over).await;
                }
                // One that was confirmed meanwhile is refused as that: this one is over by the
                // database's clock, if not by ours.
                InsertOutcome::OfferTaken => {
                    let (code, field) = (Code::OfferExpired, Some(OFFER));
                    let over = Violation { code, field, detail: None };
                    return self.resolve_conflict(core, over).await;
                }
                InsertOutcome::Forbidden => {
                    let limit = checks::forbidden(core, &self.client, self.user).await?;
                    return self.resolve_conflict(core, limit).await;
                }
                InsertOutcome::Unavailable => return Err(Error::unavailable("place an order")),
                InsertOutcome::Failed(error) => return Err(error.into()),
                // The statement may have been carried out. The quote's order says so, or will when
                // the client asks again; another statement could not tell.
                InsertOutcome::Unknown => {
                    return match self.existing_order(core).await {
                        Ok(Some(confirmed)) => Ok(confirmed),
                        _ => Err(Error::unavailable("learn whether an order was placed")),
                    };
                }
            }
        }
        Err(Error::invariant("find a free order number"))
    }

    /// The order that this quote became before, in the same terms.
    ///
    /// # Errors
    /// ER007 when it became one in other terms.
    pub(super) async fn existing_order(&self, core: &Core) -> Result<Option<Confirmed>> {
        let client = self.client.id();
        let existing = ExistingOrder::find(core, client, self.quote.id).await?;
        let Some(existing) = existing else { return Ok(None) };
        if existing.terms_digest != self.terms_digest() {
            return Err(token::refused("it became an order in other terms"));
        }
        let key = OrderKey { client, order: existing.order_id };
        Confirmed::new(core, key, existing.expires_at).map(Some)
    }

    /// The answer to a confirm that the statement refused: the order of another confirm of the same
    /// quote that was faster, or else the preconditions that do not hold any more, or what the
    /// statement has found.
    async fn resolve_conflict(&self, core: &Core, found: Violation) -> Result<Confirmed> {
        if let Some(confirmed) = self.existing_order(core).await? {
            return Ok(confirmed);
        }
        let offer = match &self.request.terms {
            Terms::Offer { id, .. } => OfferTerms::find(core, self.client.id(), *id).await?,
            Terms::Stated { .. } => None,
        };
        // It may have been disabled since it was read.
        let identifier = self.request.account.as_deref();
        let account = NamedAccount::find(core, self.client.id(), self.user, identifier).await?;
        let mut refusal = self.refusal(core, offer.as_ref(), &account).await?;
        if refusal.is_empty() {
            refusal.add_violation(found);
        }
        Err(refusal.into())
    }

    pub(super) fn terms_digest(&self) -> [u8; 32] {
        let Confirm { partner_reference, terms, .. } = &self.request;
        let offer = match terms {
            Terms::Offer { id, .. } => Some(*id),
            Terms::Stated { .. } => None,
        };
        let reference = partner_reference.as_ref();
        terms::digest(&self.destination, offer, reference, self.user, &self.account)
    }
}
