//! Savings plans (dollar-cost averaging): a deposit by bank transfer that names a plan's code buys
//! at once.
//!
//! - [`list`] and [`update`] are the partner's endpoints; operators open and read plans, and
//!   report deposits (`admin/dca.rs`)
//! - [`deposit`] turns a deposit into an order

pub(crate) mod code;
pub(crate) mod deposit;
pub mod list;
pub mod page;
pub mod update;

use std::sync::Arc;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;

use crate::platform::error::{Error, Result};
use crate::trading::catalogue::Catalogue;
use rampart_types::{CurrencyCode, CurrencyDetails, DestinationTag, Preserialized};

/// Largest intended amount, in smallest units: every JSON reader holds it exactly.
pub(crate) const INTENDED_AMOUNT_MAX: i64 = (1 << 53) - 1;
/// Longest name of a plan, in characters.
pub(crate) const NAME_CHARS_MAX: usize = 255;

/// Intended interval of deposits; shown, never acted on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frequency {
    Weekly,
    Biweekly,
    Monthly,
    Quarterly,
    HalfYearly,
}

rampart_types::named_values! {
    pub(crate) Frequency {
        Weekly = "weekly",
        Biweekly = "biweekly",
        Monthly = "monthly",
        Quarterly = "quarterly",
        HalfYearly = "half_yearly",
    }
}

/// A savings plan, as the API document has it.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "DcaPlan")]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// Code that a deposit must name.
    code: String,
    /// The partner through which it was opened, if any.
    api_client_name: Option<String>,
    /// Code of the currency that is bought.
    crypto_currency: CurrencyCode,
    /// Address that the coins are sent to.
    wallet_address: String,
    /// Tag or memo that goes with the address.
    destination_tag: Option<DestinationTag>,
    /// Bank of the account to transfer to.
    bank_name: String,
    /// IBAN of the account to transfer to.
    bank_iban: String,
    /// BIC of the account to transfer to.
    bank_bic: String,
    /// Name that the user has given the plan.
    name: Option<String>,
    /// In cents; shown, never acted on.
    intended_amount: Option<i64>,
    /// Shown, never acted on.
    frequency: Option<String>,
    /// `true` if the user does not want to see it.
    hidden: bool,
    /// Time of its creation.
    created_at: DateTime<Utc>,
    /// Currency that is bought.
    target_currency: Arc<Preserialized<CurrencyDetails>>,
}

/// The columns of a [`Plan`].
#[derive(Debug)]
pub(crate) struct PlanRow {
    pub(crate) code: String,
    pub(crate) through_partner: bool,
    pub(crate) crypto_currency: String,
    pub(crate) wallet_address: String,
    pub(crate) destination_tag: Option<String>,
    pub(crate) bank_name: String,
    pub(crate) bank_iban: String,
    pub(crate) bank_bic: String,
    pub(crate) name: Option<String>,
    pub(crate) intended_amount: Option<i64>,
    pub(crate) frequency: Option<String>,
    pub(crate) hidden: bool,
    pub(crate) created_at: DateTime<Utc>,
}

/// A statement that yields plans: the SQL before their columns, and the SQL after them.
macro_rules! plans {
    ($before:literal, $behind:literal, $($argument:expr),+ $(,)?) => {
        sqlx::query_as!(
            $crate::trading::dca::PlanRow,
            $before + " code, through_partner, crypto_currency, wallet_address, destination_tag, \
             bank_name, bank_iban, bank_bic, name, intended_amount, frequency, hidden, \
             created_at " + $behind,
            $($argument),+
        )
    };
}

pub(crate) use plans;

impl PlanRow {
    /// The plan, in the catalogue's currencies; `partner` is the name of its client.
    ///
    /// # Errors
    /// When the row is invalid; the edge never writes such a row.
    pub(crate) fn plan(self, catalogue: &Catalogue, partner: &str) -> Result<Plan> {
        let code = self.crypto_currency.parse();
        let code: CurrencyCode = code.map_err(|e| Error::internal("read a plan's currency", e))?;
        let unknown = || Error::invariant("read a plan: its currency is not in the catalogue");
        let currency = catalogue.currencies.get(&code).ok_or_else(unknown)?;
        let crypto = currency.crypto.as_ref().ok_or_else(unknown)?;
        let tag = self.destination_tag;
        let destination_tag = tag
            .map(|text| DestinationTag::parse(crypto.chain.tag_kind(), &text))
            .transpose()
            .map_err(|e| Error::internal("read a plan's tag", e))?;
        Ok(Plan {
            code: self.code,
            api_client_name: self.through_partner.then(|| partner.to_owned()),
            crypto_currency: code,
            wallet_address: self.wallet_address,
            destination_tag,
            bank_name: self.bank_name,
            bank_iban: self.bank_iban,
            bank_bic: self.bank_bic,
            name: self.name,
            intended_amount: self.intended_amount,
            frequency: self.frequency,
            hidden: self.hidden,
            created_at: self.created_at,
            target_currency: Arc::clone(&currency.details),
        })
    }
}

/// True for a valid name: at most [`NAME_CHARS_MAX`] characters, none a control character.
pub(crate) fn is_name(text: &str) -> bool {
    text.chars().count() <= NAME_CHARS_MAX && !text.chars().any(char::is_control)
}
