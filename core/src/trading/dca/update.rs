//! `PATCH /api/v2/user/dca-codes/{code}`: updates a savings plan by a merge patch (RFC 7396).

use http::{Method, StatusCode};
use serde_json::Value;

use super::code::is_code;
use super::{Frequency, INTENDED_AMOUNT_MAX, NAME_CHARS_MAX, Plan, is_name, plans};
use crate::Core;
use crate::auth::caller::Reader;
use crate::endpoint::openapi::doc::{Doc, Kind, Shape, optional, required};
use crate::endpoint::{Body, Endpoint, Json};
use crate::http::fields::{Change, Fields};
use crate::http::request::Input;
use crate::platform::error::{Code, Error, Result};
use crate::tenancy::tenants::Scope;
use rampart_types::UserId;

/// Version 2, the only one.
pub struct V2;

impl Endpoint for V2 {
    const METHOD: Method = Method::PATCH;
    const PATH: &'static str = "/api/v2/user/dca-codes/{code}";
    const SCOPE: Option<Scope> = Some(Scope::OrdersWrite);
    const ERRORS: &'static [Code] =
        &[Code::FrequencyInvalid, Code::IntendedAmountInvalid, Code::NameTooLong];
    const BODY: Body = Body::Json;
    const DOC: Doc = Doc {
        summary: "Update a savings plan",
        details: "A merge patch: a member that is left out keeps its value, `null` clears it \
                  (`hidden` is then `false`). 404 for a plan outside what the caller may list.",
        path: &[required("code", Kind::Text, "The plan's code.")],
        body: Shape::Members(&[
            optional("name", Kind::Sized(0, NAME_CHARS_MAX), "Its display name."),
            optional(
                "intendedAmount",
                Kind::Integer(1, INTENDED_AMOUNT_MAX),
                "Intended amount of a deposit, in cents.",
            ),
            optional("frequency", Kind::OneOf(&Frequency::NAMES), "Intended interval of deposits."),
            optional("hidden", Kind::Boolean, "If true, overviews leave it out."),
        ]),
        request: r#"{"name": "For later", "intendedAmount": 5000, "frequency": null}"#,
        answer: r#"{
            "code": "7K2M9QXT4B8D", "apiClientName": "Shop", "cryptoCurrency": "BTC",
            "walletAddress": "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq", "destinationTag": null,
            "bankName": "Sandbox Bank", "bankIban": "NL77SAND0000000001", "bankBic": "SANDNL2A",
            "name": "For later", "intendedAmount": 5000, "frequency": null, "hidden": false,
            "createdAt": "2026-03-01T14:00:00Z",
            "targetCurrency": {
                "code": "BTC", "ticker": "BTC", "name": "Bitcoin",
                "caip19": "bip122:000000000019d6689c085ae165831e93/slip44:0"
            }
        }"#,
        also: &[(404, Code::GeneralError)],
        ..Doc::NONE
    };
    type Caller = Reader;
    type Request = Patch;
    type Response = Json<Plan>;

    fn read(input: &Input, _: &Reader) -> Result<Patch> {
        let mut fields = Fields::from_object(&input.document)?;
        let name = fields.change("name", Code::NameTooLong, name);
        let intended_amount =
            fields.change("intendedAmount", Code::IntendedAmountInvalid, intended_amount);
        let frequency = fields.change("frequency", Code::FrequencyInvalid, frequency);
        let hidden = fields.change("hidden", Code::RequestMalformed, Value::as_bool);
        let code = input.param("code").to_owned();
        fields.finish(Some(Patch { code, name, intended_amount, frequency, hidden }))
    }

    async fn call(core: &Core, caller: Reader, patch: Patch) -> Result<Json<Plan>> {
        let Reader { client, user } = caller;
        // Also keeps null characters, which Postgres refuses, from the query.
        if !is_code(&patch.code) {
            return Err(not_found());
        }
        let Patch { code, name, intended_amount, frequency, hidden } = patch;
        // The lock has an erasure wait, which deletes the name, or this find nothing.
        let row = plans!(
            "update dca_plan p set \
             name = case when $4 then $5 else name end, \
             intended_amount = case when $6 then $7 else intended_amount end, \
             frequency = case when $8 then $9 else frequency end, \
             hidden = case when $10 then $11 else hidden end \
             where client_id = $1 and code = $2 and ($3::uuid is null or user_id = $3) \
                 and exists (select from end_user u where u.client_id = p.client_id \
                     and u.user_id = p.user_id and u.deleted_at is null for share) returning",
            "",
            client.id().uuid(),
            code,
            user.map(UserId::uuid),
            name.is_sent(),
            name.value(),
            intended_amount.is_sent(),
            intended_amount.value(),
            frequency.is_sent(),
            frequency.value().map(Frequency::as_str),
            hidden.is_sent(),
            hidden.value().unwrap_or(false),
        )
        .fetch_optional(&core.db)
        .await?;
        let plan = row.ok_or_else(not_found)?.plan(&client.catalogue, &client.tenant.name)?;
        Ok(Json(plan))
    }
}

/// The members to change.
#[derive(Debug)]
pub struct Patch {
    code: String,
    name: Change<String>,
    intended_amount: Change<i64>,
    frequency: Change<Frequency>,
    hidden: Change<bool>,
}

fn name(value: &Value) -> Option<String> {
    value.as_str().filter(|text| is_name(text)).map(str::to_owned)
}

/// A JSON integer; `5000.0` is none.
fn intended_amount(value: &Value) -> Option<i64> {
    let amount = value.as_number()?.as_str().parse().ok()?;
    (1..=INTENDED_AMOUNT_MAX).contains(&amount).then_some(amount)
}

fn frequency(value: &Value) -> Option<Frequency> {
    Frequency::from_name(value.as_str()?)
}

/// The error for unknown plans and those of others alike.
fn not_found() -> Error {
    Error::with_status(
        Code::GeneralError,
        StatusCode::NOT_FOUND,
        "no such savings plan of this user",
    )
}
