//! `POST /admin/v1/payments`: a payment that an operator has seen.

use chrono::{DateTime, TimeDelta, Utc};
use http::{Method, StatusCode};
use rust_decimal::Decimal;
use schemars::{JsonSchema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Payment, find};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Kind, Member, Shape, optional, required};
use crate::endpoint::{Body, Endpoint, Respond, Success};
use crate::http::fields::strict;
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::money::payments::refund_sums::refunds_of_order;
use crate::money::payments::report::REFERENCE_CHARS_MAX;
use crate::money::payments::store::{check_decimals, currency_of};
use crate::money::payments::{PaymentKind, Report, record};
use crate::operate::admin::approvals;
use crate::operate::admin::line;
use crate::operate::admin::operator::Operator;
use crate::operate::admin::partners;
use crate::platform::db::{Connection, retrying_statement};
use crate::platform::error::{Denial, Result};
use crate::tenancy::house::house;
use crate::trading::orders::state::Cause;
use rampart_types::money::AMOUNT_MAX;
use rampart_types::{Caip19, ClientId, CurrencyCode, JsonDecimal, OrderId};

/// The connector of what operators report.
const CONNECTOR: &str = "manual";
/// The begin of the year 2000, before which no payment was made, in seconds since 1970.
const OCCURRED_SECONDS_MIN: i64 = 946_684_800;
/// Seconds by which an operator's clock may be ahead.
const CLOCK_SECONDS_MAX: i64 = 60;
/// Longest name of a currency or an asset, in characters.
const CURRENCY_CHARS_MAX: usize = 255;

const BODY: &[Member] = &[
    optional("partner", Kind::Text, "Slug of the partner; without one the order's, or `house`."),
    required("kind", Kind::OneOf(&PaymentKind::NAMES), "Kind of the report."),
    required(
        "amount",
        Kind::Decimal,
        "Above zero, in whole smallest units, at most 1e15 whole ones.",
    ),
    required("currency", Kind::Text, "A currency's code, or an asset's code or CAIP-19 id."),
    optional("connector", Kind::OneOf(&[CONNECTOR]), "Always `manual`."),
    required(
        "providerReference",
        Kind::Sized(1, REFERENCE_CHARS_MAX),
        "The bank's or the chain's own name for it: the same one is the same payment.",
    ),
    optional("orderId", Kind::Any, "The order's number."),
    optional(
        "occurredAt",
        Kind::Format("date-time"),
        "When it happened, since 2000; now if left out.",
    ),
    required("reason", Kind::Sized(1, line::CHARS_MAX), "For the payment and the audit."),
];

/// `POST /admin/v1/payments`
pub struct RecordPayment;

impl Endpoint for RecordPayment {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/admin/v1/payments";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::CONFLICT];
    const ROLES: &'static [Role] = &[Role::Treasury];
    const APPROVAL: bool = true;
    const RETRIED: bool = true;
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Record a payment by hand",
        details: "It is booked, and its order follows, as if a connector had reported it. The same \
                  payment again changes nothing; another one with its reference is 409. Payments \
                  of one kind for one order count together towards the amount that takes two \
                  persons, refunds with those that operators have asked for, too. A refund \
                  withdraws commands that no connector has begun: of the payment whose reference \
                  it has, then as far as more is under way than is still to be given back, those \
                  of its amount first.",
        body: Shape::Members(BODY),
        request: r#"{"partner": "acme", "kind": "received", "amount": 250, "currency": "EUR",
            "connector": "manual", "providerReference": "2026-03-01-17",
            "orderId": 1234567890123456, "reason": "seen on the statement"}"#,
        answer: r#"{
            "id": "0199a000-0000-7000-8000-000000000021", "partner": "acme", "connector": "manual",
            "providerReference": "2026-03-01-17", "kind": "received", "amount": 250,
            "currency": "EUR", "orderId": 1234567890123456, "state": "matched",
            "refundRequested": 0, "actor": "ada", "reason": "seen on the statement",
            "occurredAt": "2026-03-01T11:58:00Z", "recordedAt": "2026-03-01T12:00:00Z",
            "duplicate": false
        }"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = NewPayment;
    type Response = Stored;

    fn read(input: &Input, _: &Operator) -> Result<NewPayment> {
        let new: NewPayment = strict::body(input)?;
        new.check(input.now)?;
        line::check("reason", &new.reason)?;
        Ok(new)
    }

    async fn needs_approval(core: &Core, operator: &Operator, new: &NewPayment) -> Result<bool> {
        check_decimals(core, new.amount.0, &new.currency)?;
        let mut conn = core.db.acquire().await?;
        let all = new.with_earlier_parts(core, &mut conn).await?;
        drop(conn);
        let is_large = approvals::exceeds_alone_in(core, all, &new.currency);
        let is_needed = is_large || new.is_of_coins();
        if is_needed {
            new.client(core).await?;
            return Ok(true);
        }
        if new.refunded_order().is_none() || operator.is_break_glass() {
            return Ok(false);
        }
        // Only the books know which commands it takes the place of.
        let all = retrying_statement(|| new.rehearse(core, operator.actor())).await?;
        Ok(approvals::exceeds_alone_in(core, all, &new.currency))
    }

    async fn call(core: &Core, operator: Operator, new: NewPayment) -> Result<Stored> {
        let client = new.client(core).await?;
        let actor = operator.actor();
        let report = new.report(core, client, actor)?;
        let mut tx = core.db.begin().await?;
        let recorded = record(&mut tx, core, &report).await?;
        if recorded.contradicts {
            let reason = "another payment with this providerReference is recorded already";
            return Err(Denial::conflict(reason).into());
        }
        if recorded.duplicate {
            // It is read over a connection of its own.
            tx.rollback().await?;
            operator.leave_approval()?;
            let payment = find(core, recorded.payment).await?;
            return Ok(Stored { payment, duplicate: true });
        }
        // The order's row is locked: of two parts at once, the second sees the first.
        let all = new.with_all_parts(core, &mut tx).await?;
        if approvals::exceeds_alone_in(core, all, &new.currency) {
            approvals::require(&operator)?;
        }
        let target = recorded.payment.to_string();
        let detail = json!({
            "kind": report.kind.as_str(),
            "amount": new.amount,
            "currency": report.currency,
            "providerReference": report.provider_reference,
            "orderId": report.order,
            "reason": report.reason,
        });
        operator.record(&mut tx, core, "payment.record", &target, detail).await?;
        tx.commit().await?;
        Cause::count(core, recorded.causes);
        Ok(Stored { payment: find(core, recorded.payment).await?, duplicate: false })
    }
}

/// A payment to be recorded.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct NewPayment {
    partner: Option<String>,
    kind: String,
    amount: JsonDecimal,
    currency: String,
    connector: Option<String>,
    provider_reference: String,
    order_id: Option<OrderId>,
    occurred_at: Option<DateTime<Utc>>,
    reason: String,
}

impl NewPayment {
    fn kind(&self) -> Option<PaymentKind> {
        PaymentKind::from_name(&self.kind)
    }

    /// The partner that it names, or the house.
    ///
    /// # Errors
    /// 404 when there is none of this slug.
    async fn client(&self, core: &Core) -> Result<Option<ClientId>> {
        Ok(match self.partner.as_deref() {
            Some("house") => Some(house()),
            Some(slug) => Some(partners::find(core, slug).await?.0),
            None => None,
        })
    }

    /// Its amount, with what operators have recorded of its kind for its order before.
    async fn with_earlier_parts(&self, core: &Core, conn: &mut Connection) -> Result<Decimal> {
        let JsonDecimal(amount) = self.amount;
        let Some(order) = self.order_id else { return Ok(amount) };
        let (currency, _) = currency_of(core, &self.currency);
        let own = [self.kind.clone()];
        let both = [PaymentKind::TransferSent, PaymentKind::TransferCompleted]
            .map(|kind| kind.as_str().to_owned());
        // A transfer is told of by its begin, by its end, or by both.
        let kinds: &[String] = if both.contains(&self.kind) { &both } else { &own };
        let earlier = sqlx::query_scalar!(
            r#"
            select coalesce(sum(amount), 0) as "sum!" from (
                select max(amount) as amount from payment
                where connector = $1 and kind = any ($2) and order_id = $3 and currency = $4
                    and provider_reference <> $5
                group by client_id, provider_reference) part
            "#,
            CONNECTOR,
            kinds,
            order.number(),
            currency,
            self.provider_reference,
        )
        .fetch_one(conn)
        .await?;
        Ok(earlier.checked_add(amount).unwrap_or(Decimal::MAX))
    }

    /// As [`Self::with_earlier_parts`], once it is recorded: of a refund also what operators have
    /// asked connectors to give back of its order.
    async fn with_all_parts(&self, core: &Core, conn: &mut Connection) -> Result<Decimal> {
        let by_hand = self.with_earlier_parts(core, &mut *conn).await?;
        let Some(order) = self.refunded_order() else { return Ok(by_hand) };
        let (currency, _) = currency_of(core, &self.currency);
        let all = refunds_of_order(conn, order.number(), &currency).await?;
        Ok(all.max(by_hand))
    }

    /// [`Self::with_all_parts`] if it were recorded; nothing if it is already. Its transaction is
    /// undone.
    async fn rehearse(&self, core: &Core, actor: &str) -> Result<Decimal> {
        let client = self.client(core).await?;
        let report = self.report(core, client, actor)?;
        let mut tx = core.db.begin().await?;
        let recorded = record(&mut tx, core, &report).await?;
        let all = match recorded.duplicate {
            true => Decimal::ZERO,
            false => self.with_all_parts(core, &mut tx).await?,
        };
        tx.rollback().await?;
        Ok(all)
    }

    /// The order that it gives money back of.
    fn refunded_order(&self) -> Option<OrderId> {
        self.order_id.filter(|_| self.kind() == Some(PaymentKind::Refunded))
    }

    fn is_of_coins(&self) -> bool {
        matches!(
            self.kind(),
            Some(
                PaymentKind::PayoutSent
                    | PaymentKind::PayoutConfirmed
                    | PaymentKind::PayoutFailed
                    | PaymentKind::DepositReceived
            )
        )
    }

    /// Refuses what has not the form of a payment that was made before `now`.
    fn check(&self, now: DateTime<Utc>) -> Result<(), Denial> {
        let latest = now + TimeDelta::seconds(CLOCK_SECONDS_MAX);
        let cannot_be = |at: DateTime<Utc>| at.timestamp() < OCCURRED_SECONDS_MIN || at > latest;
        let sized = |text: &str, most| (1..=most).contains(&text.chars().count());
        let plain = |text: &str| !text.chars().any(char::is_control);
        let is_asset =
            |text: &str| text.parse::<CurrencyCode>().is_ok() || text.parse::<Caip19>().is_ok();
        let problem = if self.kind().is_none() {
            "kind: not one of a payment"
        } else if self.amount.0 <= Decimal::ZERO {
            "amount: above zero"
        } else if self.amount.0 > Decimal::from(AMOUNT_MAX) {
            "amount: at most 1000000000000000"
        } else if self.connector.as_deref().is_some_and(|name| name != CONNECTOR) {
            "connector: manual alone"
        } else if !sized(&self.currency, CURRENCY_CHARS_MAX) || !is_asset(&self.currency) {
            "currency: a currency's code, or an asset's code or CAIP-19 id"
        } else if !sized(&self.provider_reference, REFERENCE_CHARS_MAX)
            || !plain(&self.provider_reference)
        {
            "providerReference: 1 to 255 characters, none of control"
        } else if self.occurred_at.is_some_and(cannot_be) {
            "occurredAt: a time since 2000 that is not in the future"
        } else {
            return Ok(());
        };
        Err(Denial::unprocessable(problem))
    }

    fn report(&self, core: &Core, client: Option<ClientId>, actor: &str) -> Result<Report, Denial> {
        let kind = self.kind().ok_or_else(|| Denial::unprocessable("kind: unknown"))?;
        let now = core.clock.now();
        Ok(Report {
            client,
            connector: CONNECTOR.to_owned(),
            provider_reference: self.provider_reference.clone(),
            original_reference: None,
            kind,
            amount: self.amount.0,
            currency: self.currency.clone(),
            order: self.order_id,
            transaction_id: None,
            // The books have no entries of the future.
            occurred_at: self.occurred_at.map_or(now, |at| at.min(now)),
            actor: actor.to_owned(),
            reason: Some(self.reason.clone()),
            raw: None,
        })
    }
}

/// The payment that a report has become.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "RecordedPayment")]
pub struct Stored {
    #[serde(flatten)]
    payment: Payment,
    /// `true` if it was reported before: nothing happened.
    duplicate: bool,
}

impl Respond for Stored {
    fn respond(self) -> Result<Reply> {
        let status = if self.duplicate { StatusCode::OK } else { StatusCode::CREATED };
        Reply::json(status, &self)
    }

    fn successes(schemas: &mut SchemaGenerator) -> Vec<Success> {
        let now = Success::json::<Self>(StatusCode::CREATED, schemas);
        let before = Success::json::<Self>(StatusCode::OK, schemas);
        vec![
            Success { about: "It was recorded before.", ..before },
            Success { about: "It is recorded.", ..now },
        ]
    }
}
