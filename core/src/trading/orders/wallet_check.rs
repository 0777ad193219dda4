//! `POST /api/v2/wallets/check`: an address and a tag, judged as a confirm judges them.

use std::sync::Arc;

use http::Method;
use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::confirm::terms::Destination;
use super::state::WalletType;
use crate::Core;
use crate::auth::caller::Client;
use crate::endpoint::openapi::doc::{Doc, Kind, Shape, optional, required};
use crate::endpoint::{Body, Endpoint, Json};
use crate::http::fields::Fields;
use crate::http::request::Input;
use crate::platform::error::{Code, Error, Result};
use crate::tenancy::tenants::Scope;
use crate::trading::catalogue::{Pair, PairStatus};
use crate::trading::wallet_proof;
use rampart_types::decimal::from_number_or_text;

/// Name of the tag.
const TAG: &str = "destinationTag";

/// Version 2, the only one.
pub struct V2;

impl Endpoint for V2 {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/api/v2/wallets/check";
    const SCOPE: Option<Scope> = Some(Scope::QuotesRead);
    const ERRORS: &'static [Code] = &[
        Code::CurrencyPairUnknown,
        Code::FiatAmountInvalid,
        Code::WalletAddressInvalid,
        Code::DestinationTagInvalid,
        Code::RequestMalformed,
    ];
    const BODY: Body = Body::Json;
    const DOC: Doc = Doc {
        summary: "Check a wallet before it is used",
        details: "By the rules of a confirm: the address must be, to the character, one of the \
                  main network of the currency that is bought, and the tag one that its network \
                  knows. Nothing is stored, and nobody is asked whether the wallet exists. Most \
                  chains' addresses have a checksum; Solana's have none.",
        body: Shape::Members(&[
            required(
                "currencyPair",
                Kind::Matching("^[A-Z0-9]{2,12}-[A-Z0-9]{2,12}$"),
                "The pair whose crypto currency is bought: `BTC-EUR`.",
            ),
            required("walletAddress", Kind::Text, "The address; any text is judged."),
            optional(TAG, Kind::Tag, "The tag or memo that goes with the address."),
            optional(
                "walletType",
                Kind::OneOf(&[WalletType::Vasp.as_str(), WalletType::Unhosted.as_str()]),
                "`vasp`: a service provider keeps the wallet; `unhosted`, the default: the user.",
            ),
            optional(
                "fiatAmount",
                Kind::DecimalOrText,
                "Amount of the payment, for `ownershipProofRequired`.",
            ),
        ]),
        request: r#"{
            "currencyPair": "XRP-EUR", "walletAddress": "rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh",
            "destinationTag": 7
        }"#,
        answer: r#"{"valid": true, "network": "xrp", "ownershipProofRequired": true}"#,
        ..Doc::NONE
    };
    type Caller = Client;
    type Request = Request;
    type Response = Json<CheckedWallet>;

    fn read(input: &Input, client: &Client) -> Result<Request> {
        let mut fields = Fields::from_object(&input.document)?;
        let pair = fields.required("currencyPair", Code::CurrencyPairUnknown, |value| {
            let pair = client.catalogue.pairs.get(&value.as_str()?.parse().ok()?)?;
            (pair.buy.status != PairStatus::Disabled).then(|| Arc::clone(pair))
        });
        // An empty one is judged like any other text.
        let address = fields.required("walletAddress", Code::WalletAddressInvalid, |text| {
            text.as_str().map(str::to_owned)
        });
        let wallet_type = fields.optional("walletType", Code::RequestMalformed, |name| {
            WalletType::from_name(name.as_str()?)
        });
        let fiat = fields.optional("fiatAmount", Code::FiatAmountInvalid, |amount| {
            from_number_or_text(amount).filter(|amount| *amount > Decimal::ZERO)
        });
        let tag = fields.optional(TAG, Code::DestinationTagInvalid, |tag| {
            (tag.is_string() || tag.is_u64() || tag.is_i64()).then(|| tag.clone())
        });
        let request = pair.zip(address).map(|(pair, address)| Request {
            pair,
            address,
            tag: tag.unwrap_or_default(),
            wallet_type: wallet_type.unwrap_or(WalletType::Unhosted),
            fiat,
        });
        fields.finish(request)
    }

    async fn call(core: &Core, client: Client, request: Request) -> Result<Json<CheckedWallet>> {
        let Request { pair, address, tag, wallet_type, fiat } = request;
        let crypto = pair.base.crypto.as_ref();
        let crypto =
            crypto.ok_or_else(|| Error::invariant("read the crypto currency of a pair"))?;
        let valid = Destination::parse(crypto, &address, &tag, TAG).is_ok();
        let currency = pair.quote.code();
        let is_large = fiat
            .is_none_or(|fiat| wallet_proof::is_needed(core, &client.catalogue, fiat, currency));
        Ok(Json(CheckedWallet {
            valid,
            network: crypto.chain.as_str(),
            ownership_proof_required: valid && is_large && wallet_type == WalletType::Unhosted,
        }))
    }
}

/// A wallet to be checked.
#[derive(Debug)]
pub struct Request {
    pair: Arc<Pair>,
    address: String,
    tag: Value,
    wallet_type: WalletType,
    fiat: Option<Decimal>,
}

/// The result of a check.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckedWallet {
    /// A confirm takes this address with this tag.
    valid: bool,
    /// The network that coins are sent by: `bitcoin`, `ethereum`.
    network: &'static str,
    /// An order to this wallet waits for a proof that it is the user's: it is unhosted, and
    /// `fiatAmount`, or what it may be, is above 1000 EUR.
    ownership_proof_required: bool,
}
