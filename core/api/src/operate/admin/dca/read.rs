//! `GET /admin/v1/dca-codes/{code}`

use chrono::{DateTime, Utc};
use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;

use super::{CODE, Criteria, ListedPlan, only};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::Doc;
use crate::endpoint::{Endpoint, Json};
use crate::http::request::Input;
use crate::operate::admin::operator::Operator;
use crate::platform::error::{Denial, Result};
use crate::trading::dca::code::is_code;
use rampart_types::JsonDecimal;

/// Most deposits of one answer.
const DEPOSITS_MAX: i64 = 1_000;

/// `GET /admin/v1/dca-codes/{code}`
pub struct ReadPlan;

impl Endpoint for ReadPlan {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/dca-codes/{code}";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::CONFLICT];
    const ROLES: &'static [Role] = Role::ALL;
    // The wallet's address is a person's.
    const READ_AUDIT: Option<&'static str> = Some("dca.read");
    const DOC: Doc = Doc {
        summary: "Read a savings plan with its deposits",
        details: "The newest 1000 deposits.",
        path: &[CODE],
        answer: r#"{"code": "7K2M9QXT4B8D", "partner": "acme",
            "userId": "0199a000-0000-7000-8000-000000000005", "cryptoCurrency": "BTC",
            "bankIban": "NL77SAND0000000001", "intendedAmount": 5000, "frequency": "monthly",
            "hidden": false, "createdAt": "2026-03-01T14:00:00Z",
            "walletAddress": "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq", "destinationTag": null,
            "deposits": [{"reference": "2026-03-01-17", "amount": 50, "currencyCode": "EUR",
                "orderId": 1742980455013377, "createdAt": "2026-03-02T08:00:00Z"}]}"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = String;
    type Response = Json<WithDeposits>;

    fn read(input: &Input, _: &Operator) -> Result<String> {
        Ok(input.param("code").to_owned())
    }

    async fn call(core: &Core, _: Operator, code: String) -> Result<Json<WithDeposits>> {
        if !is_code(&code) {
            return Err(Denial::not_found("savings plan").into());
        }
        // A second one tells that the code is that of several partners' plans.
        let criteria = Criteria { code: Some(code), limit: 2, ..Criteria::default() };
        let plan = only(criteria.find(core).await?)?;
        let deposits = deposits(core, &plan).await?;
        let (wallet_address, destination_tag) =
            (plan.wallet_address.clone(), plan.destination_tag.clone());
        Ok(Json(WithDeposits { plan, wallet_address, destination_tag, deposits }))
    }
}

async fn deposits(core: &Core, plan: &ListedPlan) -> Result<Vec<PlanDeposit>> {
    let rows = sqlx::query!(
        "select d.reference, d.amount, d.currency, d.order_id, d.created_at \
         from dca_deposit d join client c on c.client_id = d.client_id \
         where c.slug = $1 and d.code = $2 order by d.created_at desc, d.reference limit $3",
        plan.partner,
        plan.code,
        DEPOSITS_MAX,
    )
    .fetch_all(&core.db)
    .await?;
    let deposits = rows.into_iter().map(|row| PlanDeposit {
        reference: row.reference,
        amount: JsonDecimal(row.amount),
        currency_code: row.currency,
        order_id: row.order_id,
        created_at: row.created_at,
    });
    Ok(deposits.collect())
}

/// A savings plan with its deposits.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "DcaPlanWithDeposits")]
#[serde(rename_all = "camelCase")]
pub struct WithDeposits {
    #[serde(flatten)]
    plan: ListedPlan,
    /// Address that the coins are sent to.
    wallet_address: String,
    /// Tag or memo that goes with the address; null without one.
    destination_tag: Option<String>,
    /// Deposits on record, newest first; at most 1000.
    deposits: Vec<PlanDeposit>,
}

/// A deposit to a savings plan.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "DcaDeposit")]
#[serde(rename_all = "camelCase")]
pub struct PlanDeposit {
    /// The bank's own reference.
    reference: String,
    /// The amount that has arrived.
    amount: JsonDecimal,
    /// The currency that has arrived.
    currency_code: String,
    /// The order that it has become.
    order_id: i64,
    /// When it was reported.
    created_at: DateTime<Utc>,
}
