//! `GET /admin/v1/currencies`

use http::Method;
use schemars::JsonSchema;
use serde::Serialize;

use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::Endpoint;
use crate::endpoint::openapi::doc::{Doc, Kind, optional};
use crate::http::request::Input;
use crate::operate::admin::operator::Operator;
use crate::operate::admin::page::{Page, Part, limit};
use crate::platform::error::Result;

/// Most currencies of one answer; the catalogue has fewer.
const CURRENCIES_MAX: i64 = 1_000;

/// `GET /admin/v1/currencies`
pub struct ListCurrencies;

impl Endpoint for ListCurrencies {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/currencies";
    const ROLES: &'static [Role] = Role::ALL;
    const DOC: Doc = Doc {
        summary: "List the currencies",
        details: "Fiat and crypto, in the order of their codes. Migrations make them.",
        query: &[
            optional("after", Kind::Text, "The last code of the page before."),
            limit(CURRENCIES_MAX),
        ],
        answer: r#"[{"code": "BTC", "kind": "crypto", "ticker": "BTC", "name": "Bitcoin",
            "decimals": 8, "caip19": "bip122:000000000019d6689c085ae165831e93/slip44:0",
            "network": "Bitcoin", "supportsTag": false}]"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Part;
    type Response = Page<ListedCurrency>;

    fn read(input: &Input, _: &Operator) -> Result<Part> {
        Part::read(input, CURRENCIES_MAX)
    }

    async fn call(core: &Core, _: Operator, part: Part) -> Result<Page<ListedCurrency>> {
        let currencies = sqlx::query_as!(
            ListedCurrency,
            "select code, kind, ticker, name, decimals, caip19, chain_name as network, supports_tag \
             from currency order by code limit $1",
            CURRENCIES_MAX,
        )
        .fetch_all(&core.db)
        .await?;
        part.of(currencies, |currency| currency.code.clone())
    }
}

/// A currency.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedCurrency {
    /// The code that the API takes.
    code: String,
    /// `fiat` or `crypto`.
    kind: String,
    /// The code without a network.
    ticker: String,
    /// Name for people.
    name: String,
    /// Digits behind the decimal point.
    decimals: i16,
    /// The asset's CAIP-19 id.
    caip19: String,
    /// The network of a crypto currency.
    network: Option<String>,
    /// `true` if payments to an address can carry a tag.
    supports_tag: bool,
}
