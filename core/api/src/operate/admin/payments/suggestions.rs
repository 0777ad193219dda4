//! `GET /admin/v1/payments/{id}/suggestions`: open orders that a payment may be meant for.

use chrono::{DateTime, Utc};
use http::{Method, StatusCode};
use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::read::report;
use super::{ID, find, id};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::Endpoint;
use crate::endpoint::openapi::doc::{Doc, Kind, optional};
use crate::http::request::Input;
use crate::operate::admin::operator::Operator;
use crate::operate::admin::page::{Page, Part, limit};
use crate::platform::error::Result;
use crate::users::search_index::SearchKey;
use rampart_types::{JsonDecimal, OrderId, folded_name};

/// Most orders of an answer.
const SUGGESTIONS_MAX: i64 = 20;
/// Age of an order above which its amount alone suggests nothing, in days.
const AGE_DAYS_MAX: i32 = 30;
/// Most orders' numbers that are read out of a payment's texts.
const NUMBERS_MAX: usize = 16;

/// `GET /admin/v1/payments/{id}/suggestions`
pub struct SuggestOrders;

impl Endpoint for SuggestOrders {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/payments/{id}/suggestions";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND];
    const ROLES: &'static [Role] = &[Role::Support, Role::Compliance, Role::Treasury];
    const READ_AUDIT: Option<&'static str> = Some("payment.suggest");
    const DOC: Doc = Doc {
        summary: "Suggest orders that a payment may be meant for",
        details: "Orders that wait for their payment, best first, at most 20: one whose number \
                  stands in the payment's reference or report, whose amount is the same and which \
                  is not older than 30 days, or whose user has the payer's name.",
        path: &[ID],
        query: &[
            optional("after", Kind::Text, "The last order's number of the page before."),
            limit(SUGGESTIONS_MAX),
        ],
        answer: r#"[{"orderId": 1234567890123456, "partner": "acme", "side": "buy",
            "status": "pending", "fiatAmount": 250, "fiatCurrency": "EUR",
            "createdAt": "2026-03-01T11:50:00Z", "reasons": ["number", "amount"]}]"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = (String, Part);
    type Response = Page<Suggestion>;

    fn read(input: &Input, _: &Operator) -> Result<(String, Part)> {
        Ok((input.param("id").to_owned(), Part::read(input, SUGGESTIONS_MAX)?))
    }

    async fn call(
        core: &Core,
        _: Operator,
        (text, part): (String, Part),
    ) -> Result<Page<Suggestion>> {
        let id = id(&text)?;
        let payment = find(core, id).await?;
        let report = report(core, id).await?.unwrap_or_default();
        let mut texts = vec![payment.provider_reference.clone()];
        collect_texts(&report, &mut texts);
        let wanted = Wanted {
            numbers: numbers(&texts),
            amount: payment.amount.0,
            currency: payment.currency,
            payer: name_digests(core, &report)?,
        };
        part.of(wanted.find(core).await?, |order| order.order_id.to_string())
    }
}

/// An order that a payment may be meant for.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "SuggestedOrder")]
#[serde(rename_all = "camelCase")]
pub struct Suggestion {
    /// The order's number.
    order_id: i64,
    /// The partner's slug.
    partner: String,
    /// `buy` or `sell`, seen from the user.
    side: String,
    /// Its state, as partners see it.
    status: String,
    /// The amount that the user pays or receives.
    fiat_amount: JsonDecimal,
    /// The amount's currency.
    fiat_currency: String,
    /// When it was made.
    created_at: DateTime<Utc>,
    /// `number`, `amount` and `name`, as they apply.
    reasons: Vec<String>,
}

/// Properties of an order that a payment is meant for.
struct Wanted {
    numbers: Vec<i64>,
    amount: Decimal,
    currency: String,
    /// Digests of the payer's name, one for each client.
    payer: Vec<Vec<u8>>,
}

impl Wanted {
    /// Orders that wait for a payment, those with most reasons first.
    async fn find(self, core: &Core) -> Result<Vec<Suggestion>> {
        let rows = sqlx::query!(
            r#"
            with waiting as (
                select client_id, order_id, user_id, 'buy' as side, status, fiat_amount,
                    fiat_currency, fiat_amount as due, fiat_currency as due_in, created_at
                from buy_order where status = 'pending'
                union all
                select client_id, order_id, user_id, 'sell', status, fiat_amount, fiat_currency,
                    crypto_amount, crypto_currency, created_at
                from sell_order where status = 'pending'
            ), judged as (
                select w.client_id, w.order_id, w.side, w.status, w.fiat_amount, w.fiat_currency,
                    w.created_at,
                    array_remove(array[
                        case when w.order_id = any ($1) then 'number' end,
                        case when w.due = $2 and w.due_in = $3
                            and w.created_at > rampart_now() - make_interval(days => $5::int)
                            then 'amount' end,
                        case when exists (select from user_search s
                            where s.client_id = w.client_id and s.kind = 'name'
                                and s.user_id = w.user_id and s.digest = any ($4))
                            then 'name' end], null) as reasons
                from waiting w
            )
            select j.order_id as "order_id!", c.slug as "slug!", j.side as "side!",
                j.status as "status!", j.fiat_amount as "fiat_amount!",
                j.fiat_currency as "fiat_currency!", j.created_at as "created_at!",
                j.reasons as "reasons!: Vec<String>"
            from judged j join client c using (client_id)
            where cardinality(j.reasons) > 0
            order by 'number' = any (j.reasons) desc, cardinality(j.reasons) desc,
                j.created_at desc, j.order_id limit $6
            "#,
            &self.numbers,
            self.amount,
            self.currency,
            &self.payer,
            AGE_DAYS_MAX,
            SUGGESTIONS_MAX,
        )
        .fetch_all(&core.db)
        .await?;
        let suggestions = rows.into_iter().map(|row| Suggestion {
            order_id: row.order_id,
            partner: row.slug,
            side: row.side,
            status: row.status,
            fiat_amount: JsonDecimal(row.fiat_amount),
            fiat_currency: row.fiat_currency,
            created_at: row.created_at,
            reasons: row.reasons,
        });
        Ok(suggestions.collect())
    }
}

/// Every text of a report.
fn collect_texts(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(values) => values.iter().for_each(|value| collect_texts(value, texts)),
        Value::Object(members) => {
            members.values().for_each(|value| collect_texts(value, texts));
        }
        _ => {}
    }
}

/// Orders' numbers in texts: whole runs of digits.
fn numbers(texts: &[String]) -> Vec<i64> {
    let runs = texts.iter().flat_map(|text| text.split(|c: char| !c.is_ascii_digit()));
    let numbers = runs.filter_map(|run| run.parse::<OrderId>().ok()).map(OrderId::number);
    numbers.take(NUMBERS_MAX).collect()
}

/// The digests of the payer's name, as a user of each client would have it.
fn name_digests(core: &Core, report: &Value) -> Result<Vec<Vec<u8>>> {
    let name = report["name"].as_str().map(folded_name).filter(|name| !name.is_empty());
    let Some(name) = name else { return Ok(Vec::new()) };
    let key = SearchKey::Name(name);
    let snapshot = core.snapshots.current();
    snapshot.tenants.keys().map(|client| key.digest(core, *client)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_read_out_of_every_text() {
        let mut texts = vec!["INV-1234567890123456/7".to_owned()];
        collect_texts(
            &json!({"a": ["order 2234567890123456."], "b": {"c": "x"}, "d": 3}),
            &mut texts,
        );
        let found = numbers(&texts);
        assert!(found.contains(&1_234_567_890_123_456) && found.contains(&2_234_567_890_123_456));
        assert!(!found.contains(&34_567_890_123_456));
    }
}
