//! Savings plans (dollar-cost averaging): a deposit by bank transfer that names a plan's code buys
//! at once.
//!
//! - [`list`] and [`update`] are the partner's endpoints; operators open and read plans, and
//!   report deposits (`admin/dca.rs`)
//! - [`deposit`] turns a deposit into an order

pub mod code;
pub mod deposit;
pub mod list;
pub mod page;
pub mod update;

use std::sync::Arc;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;

use crate::platform::db::Connection;
use crate::platform::error::{Error, Result};
use crate::trading::catalogue::Catalogue;
use rampart_types::{CurrencyCode, CurrencyDetails, DestinationTag, Preserialized, UserKey};

/// Largest intended amount, in smallest units: every JSON reader holds it exactly.
pub const INTENDED_AMOUNT_MAX: i64 = (1 << 53) - 1;
/// Longest name of a plan, in characters.
pub const NAME_CHARS_MAX: usize = 255;

/// Intended interval of deposits; shown, never acted on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frequency {
    /// Every week.
    Weekly,
    /// Every two weeks.
    Biweekly,
    /// Every month.
    Monthly,
    /// Every three months.
    Quarterly,
    /// Every six months.
    HalfYearly,
}

rampart_types::named_values! {
    pub Frequency {
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
pub struct PlanRow {
    /// Its code, the reference of transfers.
    pub code: String,
    /// True if it is shown as the partner's.
    pub through_partner: bool,
    /// Currency that is bought.
    pub crypto_currency: String,
    /// Address that the coins are sent to.
    pub wallet_address: String,
    /// Tag or memo that goes with the address.
    pub destination_tag: Option<String>,
    /// Bank of the account to transfer to.
    pub bank_name: String,
    /// IBAN of the account to transfer to.
    pub bank_iban: String,
    /// BIC of the account to transfer to.
    pub bank_bic: String,
    /// Name that the user has given the plan.
    pub name: Option<String>,
    /// In cents; shown, never acted on.
    pub intended_amount: Option<i64>,
    /// Shown, never acted on.
    pub frequency: Option<String>,
    /// True if the user does not want to see it.
    pub hidden: bool,
    /// Time of its creation.
    pub created_at: DateTime<Utc>,
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
    /// Stores a new plan of a user, whose row the caller holds. The result is what is stored.
    ///
    /// # Errors
    /// When the database cannot be used.
    pub async fn insert(self, conn: &mut Connection, owner: UserKey) -> Result<Self> {
        let stored = plans!(
            "insert into dca_plan (client_id, code, user_id, through_partner, crypto_currency, \
             wallet_address, destination_tag, bank_name, bank_iban, bank_bic, name, \
             intended_amount, frequency, created_at) \
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) returning",
            "",
            owner.client.uuid(),
            self.code,
            owner.user.uuid(),
            self.through_partner,
            self.crypto_currency,
            self.wallet_address,
            self.destination_tag,
            self.bank_name,
            self.bank_iban,
            self.bank_bic,
            self.name,
            self.intended_amount,
            self.frequency,
            self.created_at,
        );
        Ok(stored.fetch_one(conn).await?)
    }

    /// The plan, in the catalogue's currencies; `partner` is the name of its client.
    ///
    /// # Errors
    /// When the row is invalid; the edge never writes such a row.
    pub fn plan(self, catalogue: &Catalogue, partner: &str) -> Result<Plan> {
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
pub fn is_name(text: &str) -> bool {
    text.chars().count() <= NAME_CHARS_MAX && !text.chars().any(char::is_control)
}
