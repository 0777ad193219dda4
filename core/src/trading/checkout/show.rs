//! `GET /checkout/{session}`: the terms of the purchase. The link is the permission to read them.

use chrono::{DateTime, Utc};
use http::{Method, StatusCode};
use rust_decimal::Decimal;

use super::{page, session};
use crate::Core;
use crate::auth::caller::Anyone;
use crate::endpoint::Endpoint;
use crate::http::fields::Fields;
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::platform::error::{Code, Result};
use crate::users::identifiers;
use rampart_types::ReturnUrl;

/// The page.
pub struct Show;

impl Endpoint for Show {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/checkout/{session}";
    const ERRORS: &'static [Code] = &[];
    type Caller = Anyone;
    type Request = Link;
    type Response = Reply;

    fn read(input: &Input, _: &Anyone) -> Result<Link> {
        let query = Fields::of_query(input.head.query.as_deref());
        let identifier = query.value("identifier").and_then(|value| value.as_str());
        let identifier = identifier.map(str::to_owned);
        Ok(Link { session: input.param("session").to_owned(), identifier })
    }

    async fn call(core: &Core, _: Anyone, link: Link) -> Result<Reply> {
        Ok(match Checkout::find(core, &link).await? {
            Some(checkout) => page::show(StatusCode::OK, &checkout),
            None => page::not_found(),
        })
    }
}

/// The link's parameters.
#[derive(Debug)]
pub struct Link {
    session: String,
    identifier: Option<String>,
}

/// A checkout as shown to its user.
#[derive(Debug)]
pub(super) struct Checkout {
    pub(super) partner: String,
    /// `100.00 EUR`, or the currency alone if the user chooses the amount.
    pub(super) pays: String,
    /// Likewise.
    pub(super) gets: String,
    pub(super) method: String,
    /// `None` if the user chooses it, or the partner hides it.
    pub(super) wallet_address: Option<String>,
    pub(super) expires_at: DateTime<Utc>,
    /// True if money is only simulated.
    pub(super) is_test: bool,
    /// True if it is neither confirmed nor expired.
    pub(super) is_open: bool,
    pub(super) return_url: Option<ReturnUrl>,
}

impl Checkout {
    /// The checkout of a link; `None` if the link, or the identifier in it, is invalid.
    async fn find(core: &Core, link: &Link) -> Result<Option<Self>> {
        let Some((client, offer)) = session::open(core, &link.session)? else { return Ok(None) };
        let sealed = link.identifier.as_deref();
        if sealed.is_some_and(|text| identifiers::open(core, client, text).is_none()) {
            return Ok(None);
        }
        let snapshot = core.snapshots.current();
        let Some(tenant) = snapshot.tenants.get(&client) else { return Ok(None) };
        let row = sqlx::query!(
            "select base_currency, quote_currency, payment_method, base_amount, quote_amount, \
             wallet_address, show_wallet_address, return_url, expires_at, confirmed_at \
             from offer where client_id = $1 and offer_id = $2 \
             and exists (select from checkout where client_id = $1 and offer_id = $2)",
            client.uuid(),
            offer.uuid(),
        )
        .fetch_optional(&core.db)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let catalogue = &snapshot.catalogue;
        let text = |value: Option<Decimal>, code: String| match value {
            Some(value) => catalogue.format_amount(value, &code),
            None => code,
        };
        let method = row.payment_method.unwrap_or_default();
        let label = catalogue.payment_method(&method).map(|method| method.label.clone());
        let is_open =
            row.confirmed_at.is_none() && core.clock.now() < row.expires_at && !tenant.suspended;
        Ok(Some(Self {
            partner: tenant.name.clone(),
            pays: text(row.quote_amount, row.quote_currency),
            gets: text(row.base_amount, row.base_currency),
            method: label.unwrap_or(method),
            wallet_address: row.wallet_address.filter(|_| row.show_wallet_address),
            expires_at: row.expires_at,
            is_test: tenant.is_test(),
            is_open,
            // Validated when it was stored, and again before it becomes a link on our page.
            return_url: row.return_url.and_then(|url| url.parse().ok()),
        }))
    }
}
