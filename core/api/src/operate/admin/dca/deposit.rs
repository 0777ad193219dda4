//! `POST /admin/v1/dca-codes/{code}/deposits`

use http::{Method, StatusCode};
use rust_decimal::Decimal;
use schemars::{JsonSchema, SchemaGenerator};
use serde::Deserialize;
use serde_json::json;

use super::{CODE, only};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Shape};
use crate::endpoint::{Body, Endpoint, Respond, Success};
use crate::http::fields::strict;
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::operate::admin::approvals;
use crate::operate::admin::operator::Operator;
use crate::operate::admin::orders::FoundOrder;
use crate::operate::admin::orders::read::{EXAMPLE, Order};
use crate::platform::audit::{self, Entry};
use crate::platform::error::{Denial, Error, Result};
use crate::trading::dca::code;
use crate::trading::dca::deposit::{Bought, Deposit, DepositPlan, make_order, quote};
use crate::trading::orders::column::id;
use crate::trading::orders::status::Cause;
use crate::trading::quotes::Side;
use rampart_types::decimal::fits_decimals;
use rampart_types::{CurrencyCode, JsonDecimal, OrderId, OrderKey, PartnerReference};

/// Most quotes that are made for one report: one more for every correction of the price meanwhile.
const QUOTES_MAX: u32 = 4;

/// `POST /admin/v1/dca-codes/{code}/deposits`
pub struct ReportDeposit;

impl Endpoint for ReportDeposit {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/admin/v1/dca-codes/{code}/deposits";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::CONFLICT];
    const ROLES: &'static [Role] = &[Role::Treasury];
    const APPROVAL: bool = true;
    // Its quote asks the partner's policies, which count and keep what they are asked.
    const DRY_RUN: bool = false;
    const RETRIED: bool = true;
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Report a deposit to a savings plan",
        details: "Makes an order of it, which waits (`blocked`) if a refund or a dispute of its \
                  reference was recorded by hand before. A payment in suspense that has this \
                  reference, amount and currency, of the plan's partner or of none, is the \
                  deposit: it is matched to the order, and no second one is booked. So is the \
                  first one that a connector or a statement tells of afterwards without an \
                  order, as long as nothing of the deposit was given back. The same deposit \
                  again is answered by its order; a reference that another deposit or payment \
                  has is 409, whichever partner that is for.",
        path: &[CODE],
        body: Shape::of::<NewDeposit>(),
        request: r#"{"amount": 50, "currencyCode": "EUR", "reference": "2026-03-01-17"}"#,
        answer: EXAMPLE,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Request;
    type Response = Reported;

    fn read(input: &Input, _: &Operator) -> Result<Request> {
        let deposit: NewDeposit = strict::body(input)?;
        if deposit.reference.parse::<PartnerReference>().is_err() {
            let reason = "reference: 1 to 255 characters, none of control";
            return Err(Denial::unprocessable(reason).into());
        }
        let request_id = input.head.request_id.clone();
        Ok(Request { code: input.param("code").to_owned(), deposit, request_id })
    }

    async fn needs_approval(core: &Core, _: &Operator, request: &Request) -> Result<bool> {
        let Request { code, deposit, .. } = request;
        deposit.check(core)?;
        if !approvals::exceeds_alone(core, deposit.amount.0) {
            return Ok(false);
        }
        let plan = find(core, code).await?;
        // Nobody is asked about one that was reported before.
        Ok(existing_order(core, &plan, &deposit.transfer()).await?.is_none())
    }

    async fn call(core: &Core, operator: Operator, request: Request) -> Result<Reported> {
        let Request { code, deposit, request_id } = request;
        let NewDeposit { amount: JsonDecimal(amount), currency_code: currency, reference } =
            deposit;
        let plan = find(core, &code).await?;
        let deposit = Deposit { amount, currency, reference: &reference };
        for _ in 0..QUOTES_MAX {
            if let Some(order) = existing_order(core, &plan, &deposit).await? {
                operator.leave_approval()?;
                let shown = detail(core, &plan, order).await?;
                record_read(core, &operator, order).await?;
                return Ok(Reported::Before(shown));
            }
            let quoted = quote(core, &plan, &deposit, &request_id).await?;
            let mut tx = core.db.begin().await?;
            let actor = operator.actor();
            match make_order(&mut tx, core, &plan, &deposit, &quoted, actor).await? {
                Bought::Now { order, payment, causes } => {
                    if approvals::exceeds_alone(core, amount) {
                        approvals::require(&operator)?;
                    }
                    let recorded = json!({"order": order, "amount": JsonDecimal(amount),
                        "currencyCode": currency, "reference": reference, "payment": payment});
                    operator.record(&mut tx, core, "dca.deposit", &plan.code, recorded).await?;
                    tx.commit().await?;
                    Cause::count(core, causes);
                    return Ok(Reported::Now(detail(core, &plan, order).await?));
                }
                // Another report was faster: its order is found now.
                Bought::Before => tx.rollback().await?,
                Bought::QuoteVoid => {
                    tx.rollback().await?;
                    core.refresh().await?;
                }
            }
        }
        Err(Error::unavailable("buy for a deposit"))
    }
}

/// A deposit and the plan that it is to.
#[derive(Debug)]
pub struct Request {
    code: String,
    deposit: NewDeposit,
    request_id: String,
}

/// Money that has arrived for a savings plan.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct NewDeposit {
    /// Above zero, in whole smallest units.
    amount: JsonDecimal,
    /// The currency that has arrived.
    currency_code: CurrencyCode,
    /// The bank's own reference: 1 to 255 characters, none a control character.
    reference: String,
}

impl NewDeposit {
    /// The transfer that it tells of.
    fn transfer(&self) -> Deposit<'_> {
        let (amount, currency) = (self.amount.0, self.currency_code);
        Deposit { amount, currency, reference: &self.reference }
    }

    /// Refuses what is not a positive amount in whole smallest units of a fiat currency.
    fn check(&self, core: &Core) -> Result<(), Denial> {
        let snapshot = core.snapshots.current();
        let currency = snapshot.catalogue.currencies.get(&self.currency_code);
        let currency = currency
            .filter(|currency| currency.crypto.is_none())
            .ok_or_else(|| Denial::unprocessable("currencyCode: not a fiat currency we know"))?;
        let JsonDecimal(amount) = self.amount;
        if amount <= Decimal::ZERO || !fits_decimals(amount, currency.scale()) {
            return Err(Denial::unprocessable("amount: above zero, in whole smallest units"));
        }
        Ok(())
    }
}

/// The order that a deposit has become.
#[derive(Debug)]
pub enum Reported {
    /// By this report.
    Now(Order),
    /// By a report before.
    Before(Order),
}

impl Respond for Reported {
    fn respond(self) -> Result<Reply> {
        match self {
            Self::Now(order) => Reply::json(StatusCode::CREATED, &order),
            Self::Before(order) => Reply::json(StatusCode::OK, &order),
        }
    }

    fn successes(schemas: &mut SchemaGenerator) -> Vec<Success> {
        let now = Success::json::<Order>(StatusCode::CREATED, schemas);
        let before = Success::json::<Order>(StatusCode::OK, schemas);
        vec![
            Success { about: "The order of a deposit that was reported before.", ..before },
            Success { about: "The deposit's new order.", ..now },
        ]
    }
}

/// The order that a deposit has paid.
async fn detail(core: &Core, plan: &DepositPlan, order: OrderId) -> Result<Order> {
    let key = OrderKey { client: plan.client, order };
    FoundOrder { key, side: Side::Buy }.detail(core).await
}

/// Records that an order was shown: its wallet's address is a person's, and a report that changes
/// nothing leaves no other row.
async fn record_read(core: &Core, operator: &Operator, order: OrderId) -> Result<()> {
    let (actor, target) = (operator.actor(), order.to_string());
    let entry = Entry { actor, action: "order.read", target: &target, detail: json!({}) };
    let mut tx = core.db.begin().await?;
    audit::record(&mut tx, core, entry).await?;
    tx.commit().await?;
    Ok(())
}

async fn find(core: &Core, text: &str) -> Result<DepositPlan> {
    if !code::is_code(text) {
        return Err(Denial::not_found("savings plan").into());
    }
    let rows = sqlx::query!(
        "select client_id, code, user_id, crypto_currency, wallet_address, destination_tag \
         from dca_plan where code = $1 limit 2",
        text,
    )
    .fetch_all(&core.db)
    .await?;
    let row = only(rows)?;
    let currency = row.crypto_currency.parse();
    Ok(DepositPlan {
        client: row.client_id.into(),
        code: row.code,
        user: row.user_id.into(),
        crypto_currency: currency.map_err(|e| Error::internal("read a plan's currency", e))?,
        wallet_address: row.wallet_address,
        destination_tag: row.destination_tag,
    })
}

/// The order that a deposit with this reference became before.
///
/// # Errors
/// 409 when that deposit was another one.
async fn existing_order(
    core: &Core,
    plan: &DepositPlan,
    deposit: &Deposit<'_>,
) -> Result<Option<OrderId>> {
    let row = sqlx::query!(
        "select code, amount, currency, order_id from dca_deposit \
         where client_id = $1 and reference = $2",
        plan.client.uuid(),
        deposit.reference,
    )
    .fetch_optional(&core.db)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let same = row.code == plan.code
        && row.amount == deposit.amount
        && row.currency == deposit.currency.as_str();
    if !same {
        return Err(Denial::conflict("another deposit has this reference").into());
    }
    Ok(Some(id(row.order_id)?))
}
