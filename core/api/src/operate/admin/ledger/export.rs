//! `GET /admin/v1/ledger/export`

use chrono::{DateTime, SecondsFormat, Utc};
use http::{Method, StatusCode};
use schemars::SchemaGenerator;
use serde::Deserialize;
use serde_json::json;

use super::{Criteria, Line, beancount};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Kind, optional};
use crate::endpoint::{Endpoint, Respond, Success};
use crate::http::csv::quoted;
use crate::http::fields::strict;
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::operate::admin::operator::Operator;
use crate::platform::error::{Denial, Result};

/// Most entries of one export.
const ENTRIES_MAX: i64 = 50_000;
/// The columns of the CSV.
const COLUMNS: &str = "entryId,partner,kind,orderId,paymentId,occurredAt,recordedAt,accountId,\
                       account,currency,holder,amount\n";

/// `GET /admin/v1/ledger/export`
pub struct ExportLedger;

impl Endpoint for ExportLedger {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/ledger/export";
    const ROLES: &'static [Role] = &[Role::Treasury, Role::Compliance];
    const MAY_BE_STALE: bool = true;
    const DOC: Doc = Doc {
        summary: "Export entries of the books",
        details: "As CSV, a line per posting, or in the format of beancount. 422 when there are \
                  more than 50000 entries: name a shorter time.",
        query: &[
            optional("format", Kind::OneOf(&["csv", "beancount"]), "The format; CSV if left out."),
            optional("from", Kind::Format("date-time"), "Earliest time of what happened."),
            optional("to", Kind::Format("date-time"), "Time before which it happened."),
        ],
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Period;
    type Response = Export;

    fn read(input: &Input, _: &Operator) -> Result<Period> {
        strict::query(input)
    }

    async fn call(core: &Core, _: Operator, period: Period) -> Result<Export> {
        let Period { format, from, to } = period;
        let limit = ENTRIES_MAX + 1;
        let lines = Criteria { from, to, limit, ..Criteria::default() }.lines(core).await?;
        let entries = lines.chunk_by(|one, next| one.entry_id == next.entry_id).count();
        if i64::try_from(entries).is_ok_and(|entries| entries > ENTRIES_MAX) {
            return Err(Denial::unprocessable("from, to: there are too many entries").into());
        }
        Ok(match format {
            Format::Csv => Export { media_type: CSV, text: csv(&lines) },
            Format::Beancount => Export { media_type: TEXT, text: beancount::journal(&lines) },
        })
    }
}

/// The entries that are exported.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Period {
    #[serde(default)]
    format: Format,
    from: Option<DateTime<Utc>>,
    to: Option<DateTime<Utc>>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Format {
    #[default]
    Csv,
    Beancount,
}

const CSV: &str = "text/csv; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

/// Exported entries.
#[derive(Debug)]
pub struct Export {
    media_type: &'static str,
    text: String,
}

impl Respond for Export {
    fn respond(self) -> Result<Reply> {
        Ok(Reply::with_body(StatusCode::OK, self.media_type, self.text.into()))
    }

    fn successes(_: &mut SchemaGenerator) -> Vec<Success> {
        let form = |media_type| Success {
            status: StatusCode::OK.as_u16(),
            about: "The entries, as `text/csv` or in the format of beancount.",
            body: Some((media_type, json!({ "type": "string" }))),
            headers: &[],
        };
        vec![form("text/csv"), form("text/plain")]
    }
}

fn csv(lines: &[Line]) -> String {
    let mut text = COLUMNS.to_owned();
    let time = |at: DateTime<Utc>| at.to_rfc3339_opts(SecondsFormat::Micros, true);
    for line in lines {
        let fields = [
            line.entry_id.to_string(),
            line.slug.clone(),
            line.entry.clone(),
            line.order_id.map_or_else(String::new, |order| order.to_string()),
            line.payment_id.map_or_else(String::new, |payment| payment.to_string()),
            time(line.occurred_at),
            time(line.recorded_at),
            line.account_id.to_string(),
            line.account.clone(),
            quoted(&line.currency),
            line.holder.clone(),
            line.amount.normalize().to_string(),
        ];
        text += &fields.join(",");
        text.push('\n');
    }
    text
}
