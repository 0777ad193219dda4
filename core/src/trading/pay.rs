//! The page on which an order is paid: `GET` and `POST /pay/{token}`.
//!
//! The token is the permission: anybody with the link may read and pay, and a forged form (CSRF)
//! gains nothing without it. A test tenant's order is paid by a button, one that connectors settle at
//! the payment provider: in its form for cards on this page, on the page that its command's result
//! names, or by a transfer to the account that it names. The page follows its order by `events`;
//! `watches` reads those of all pages at once.

pub mod events;
mod heading;
mod page;
mod provider;
pub mod receipt;
mod steps;
mod transfer;
mod watches;

use std::borrow::Cow;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use http::{Method, StatusCode};
use rust_decimal::Decimal;
use url::form_urlencoded;

use self::provider::{ProviderForm, ProviderPayment};
pub use self::watches::OrderWatches;
use crate::Core;
use crate::auth::caller::Anyone;
use crate::endpoint::{Body, Endpoint};
use crate::http::html::brand::Brand;
use crate::http::language::Texts;
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::money::connectors::sandbox::purchases::simulate;
use crate::platform::error::Result;
use crate::trading::catalogue::Catalogue;
use crate::trading::checks;
use crate::trading::checks::check_links::CheckLink;
use crate::trading::orders::row::fees_of_row;
use crate::trading::orders::status::{Cause, NotApplied, OrderStatus};
use crate::trading::orders::{BlockchainInfo, payment_link};
use crate::trading::price_terms::PriceTerm;
use crate::trading::quotes::Side;
use crate::trading::sandbox::SimulatedEvent;
use rampart_types::{OrderKey, ReturnUrl};

/// The actor in the order's timeline.
const ACTOR: &str = "page";
/// The query with which the form for cards comes back to the page.
const MADE: (Cow<'static, str>, Cow<'static, str>) =
    (Cow::Borrowed("payment"), Cow::Borrowed("made"));

/// Shows the order.
pub struct Show;

impl Endpoint for Show {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/pay/{token}";
    type Caller = Anyone;
    type Request = (Link, bool);
    type Response = Reply;

    fn read(input: &Input, _: &Anyone) -> Result<(Link, bool)> {
        // The form for cards comes back like this, before the provider has told of the payment.
        let query = input.head.query.as_deref().unwrap_or_default();
        let made = form_urlencoded::parse(query.as_bytes()).any(|member| member == MADE);
        Ok((Link::read(input), made))
    }

    async fn call(core: &Core, _: Anyone, (link, made): (Link, bool)) -> Result<Reply> {
        let pages = &core.settings.pages;
        let Some(mut payment) = Payment::find(core, &link.token).await? else {
            return Ok(page::not_found(link.texts, pages));
        };
        match (made, &payment.state) {
            // The time may have ended while the card was being charged.
            (true, PaymentState::AtProvider(_) | PaymentState::Closed) => {
                payment.state = PaymentState::Confirming;
            }
            (
                true,
                PaymentState::Held(_)
                | PaymentState::Moved(OrderStatus::InProgress | OrderStatus::Completed, _),
            ) if payment.return_url.is_some() => {
                return Ok(page::redirect(&link.token, payment.return_url.as_ref()));
            }
            _ => {}
        }
        Ok(page::show(&link, pages, StatusCode::OK, &payment))
    }
}

/// Applies the action of the pressed button, in the sandbox.
pub struct Act;

impl Endpoint for Act {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/pay/{token}";
    const BODY: Body = Body::Form;
    type Caller = Anyone;
    type Request = (Link, Option<Action>);
    type Response = Reply;

    fn read(input: &Input, _: &Anyone) -> Result<(Link, Option<Action>)> {
        let mut members = form_urlencoded::parse(&input.body);
        let action = members.find(|(name, _)| name == "action");
        let action = action.and_then(|(_, value)| Action::from_name(&value));
        Ok((Link::read(input), action))
    }

    async fn call(core: &Core, _: Anyone, (link, action): (Link, Option<Action>)) -> Result<Reply> {
        let pages = &core.settings.pages;
        let Some(payment) = Payment::find(core, &link.token).await? else {
            return Ok(page::not_found(link.texts, pages));
        };
        let Some(action) = action else {
            return Ok(page::show(&link, pages, StatusCode::BAD_REQUEST, &payment));
        };
        if payment.state != PaymentState::Payable {
            return Ok(page::show(&link, pages, StatusCode::CONFLICT, &payment));
        }
        let begin = || async move { core.db.begin().await.map(Some) };
        match simulate(core, payment.key, action.event(), ACTOR, begin).await {
            Ok(()) => Ok(page::redirect(&link.token, payment.return_url.as_ref())),
            // Another event came first: show the current state.
            Err(
                NotApplied::Forbidden { .. } | NotApplied::Refused(_) | NotApplied::NoSuchOrder,
            ) => Ok(match Payment::find(core, &link.token).await? {
                Some(payment) => page::show(&link, pages, StatusCode::CONFLICT, &payment),
                None => page::not_found(link.texts, pages),
            }),
            Err(NotApplied::Failed(error)) => Err(error),
        }
    }
}

/// The page's link, and the reader's language.
#[derive(Debug)]
pub struct Link {
    token: String,
    request_id: String,
    texts: Texts,
}

impl Link {
    fn read(input: &Input) -> Self {
        let texts = Texts::of(input);
        let request_id = input.head.request_id.clone();
        Self { token: input.param("token").to_owned(), request_id, texts }
    }
}

/// A button of the sandbox's page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The payment succeeds.
    Pay,
    /// The payment method's provider refuses it.
    Deny,
    /// The user cancels.
    Cancel,
}

rampart_types::named_values! {
    Action {
        Pay = "pay",
        Deny = "deny",
        Cancel = "cancel",
    }
}

impl Action {
    const fn event(self) -> SimulatedEvent {
        match self {
            Self::Pay => SimulatedEvent::PaymentReceived,
            Self::Deny => SimulatedEvent::PaymentDenied,
            Self::Cancel => SimulatedEvent::Cancel,
        }
    }
}

/// An order as shown to its payer.
#[derive(Debug)]
struct Payment {
    key: OrderKey,
    partner: String,
    brand: Brand,
    fiat: String,
    fiat_amount: Decimal,
    crypto: String,
    /// Code of the payment method, of this catalogue.
    method: String,
    catalogue: Arc<Catalogue>,
    network: String,
    price_terms: Vec<PriceTerm>,
    /// True if they become final when the payment arrives.
    is_estimated: bool,
    blockchain: BlockchainInfo,
    /// Of the wallet; `None` without one.
    destination_tag: Option<String>,
    expires_at: Option<DateTime<Utc>>,
    /// True if money is only simulated.
    is_test: bool,
    state: PaymentState,
    /// The state in a line, by which a page that follows the order knows whether it has changed.
    shown_state: String,
    return_url: Option<ReturnUrl>,
    /// Website locale of the order's user.
    region: Option<String>,
}

/// The state of an order's payment.
#[derive(Clone, Debug, PartialEq, Eq)]
enum PaymentState {
    /// It can be paid by one of the buttons.
    Payable,
    /// Its connector has not answered yet.
    Preparing,
    /// It is paid at the payment provider.
    AtProvider(ProviderForm),
    /// The provider has taken the card, and has not told of the payment yet.
    Confirming,
    /// It is a live order that no payment provider was asked about.
    NoProvider,
    /// Its time to pay has passed, or its partner is suspended.
    Closed,
    /// It is paid, and its coins wait for checks, of which the payer passes these.
    Held(Vec<CheckLink>),
    /// It is paid or final.
    Moved(OrderStatus, Cause),
}

impl Payment {
    /// The order of a link; `None` if the link is invalid.
    async fn find(core: &Core, token: &str) -> Result<Option<Self>> {
        let Some(key) = payment_link::parse(core, token)? else { return Ok(None) };
        let snapshot = core.snapshots.current();
        let Some(tenant) = snapshot.tenants.get(&key.client) else { return Ok(None) };
        let row = sqlx::query!(
            "select status as \"status: OrderStatus\", status_cause as \"status_cause: Cause\", \
             payment_method, fiat_amount, fiat_currency, \
             crypto_amount, crypto_currency, price, partner_fee, provider_fee, \
             payment_method_fee, network_fee, spread_fee, affiliate_fee, wallet_address, \
             destination_tag, transaction_id, is_estimated_quote, return_url, expires_at, \
             coalesce(expires_at < rampart_now(), false) as \"late!\", \
             case when status = 'in progress' and transaction_id is null and is_held \
                 then holds end as holds, \
             (select region from end_user u where u.client_id = buy_order.client_id \
                 and u.user_id = buy_order.user_id) as region \
             from buy_order cross join payout_gate(client_id, order_id, $3) \
             where client_id = $1 and order_id = $2",
            key.client.uuid(),
            key.order.number(),
            core.settings.compliance.gate_of_live().as_str(),
        )
        .fetch_optional(&core.db)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let pending = row.status == OrderStatus::Pending;
        let provider = match pending.then(|| ProviderPayment::find(core, key)) {
            Some(found) => found.await?,
            None => ProviderPayment::NotCommanded,
        };
        let holds = row.holds.unwrap_or_default();
        let (made, sent) = (provider.is_ready(), row.transaction_id.is_some());
        let shown_state =
            watches::shown_state(row.status, row.status_cause, row.late, made, sent, &holds);
        let state = match row.status {
            OrderStatus::Pending if row.late || tenant.suspended => PaymentState::Closed,
            OrderStatus::Pending => provider.state(tenant.is_test()),
            _ if !holds.is_empty() => {
                let holds = checks::read(Some(holds))?;
                PaymentState::Held(CheckLink::all(core, Side::Buy, key, &holds)?)
            }
            status => PaymentState::Moved(status, row.status_cause),
        };
        let (catalogue, currency) = (&snapshot.catalogue, &row.fiat_currency);
        let crypto = row.crypto_currency.parse().ok();
        let crypto = crypto.and_then(|code| Some(&**snapshot.catalogue.currencies.get(&code)?));
        let transaction = row.transaction_id.as_deref().unwrap_or_default();
        Ok(Some(Self {
            key,
            partner: tenant.name.clone(),
            brand: tenant.brand.clone(),
            fiat: catalogue.format_amount(row.fiat_amount, currency),
            fiat_amount: row.fiat_amount,
            crypto: catalogue.format_amount(row.crypto_amount, &row.crypto_currency),
            method: row.payment_method,
            catalogue: Arc::clone(&snapshot.catalogue),
            network: snapshot.catalogue.network_name(&row.crypto_currency),
            price_terms: PriceTerm::all(catalogue, currency, row.price, &fees_of_row!(row)),
            is_estimated: row.is_estimated_quote && pending,
            blockchain: BlockchainInfo::new(crypto, &row.wallet_address, transaction),
            destination_tag: row.destination_tag,
            expires_at: row.expires_at,
            is_test: tenant.is_test(),
            state,
            shown_state,
            // Validated at confirm, and again before it becomes a link on our page.
            return_url: row.return_url.and_then(|url| url.parse().ok()),
            region: row.region,
        }))
    }
}
