//! The user profile, and `GET /api/v1/user/info` (section 7 of the contract).

use chrono::{DateTime, Utc};
use http::Method;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::account::Account;
use super::documents::{self, Side};
use super::wallets::{self, EnabledWallet};
use crate::Core;
use crate::auth::caller::ClientAndUser;
use crate::endpoint::openapi::doc::Doc;
use crate::endpoint::{Endpoint, Json};
use crate::http::request::Input;
use crate::platform::db::Connection;
use crate::platform::error::{Code, Error, Result};
use crate::tenancy::tenants::Scope;
use crate::trading::limits::limit_rules::{Rules, Spent};
use crate::trading::limits::{self, INTERVAL_TEXT};
use crate::trading::quotes;
use crate::users::accounts::{self, AccountType, PaymentAccount};
use rampart_types::{Amount, CurrencyCode, EmailAddress, PhoneNumber};

/// A profile, for the OpenAPI document.
pub(crate) const EXAMPLE: &str = r#"{
    "emailAddress": "ada@example.com", "firstName": "Ada", "lastName": "Lovelace",
    "region": "nl-nl", "country": "NL", "phoneNumber": "+31612345678",
    "registrationDate": "2026-11-20T10:00:00Z", "activationDate": null, "isBusiness": false,
    "limits": {
        "buy": {"limit": {"amount": 1000, "currencyCode": "EUR"},
            "remaining": {"amount": 900, "currencyCode": "EUR"}, "interval": "P1D"},
        "sell": {"limit": {"amount": 1000, "currencyCode": "EUR"},
            "remaining": {"amount": 1000, "currencyCode": "EUR"}, "interval": "P1D"}},
    "enabledIbanAccounts": [], "enabledAccounts": [], "enabledWalletAddresses": [],
    "status": {"status": "pending", "description": "The user has not shown everything yet.",
        "details": {
            "amld5VerificationStatus": "pending", "emailAddressVerificationStatus": "pending",
            "identityVerificationStatus": "pending",
            "privacyAgreementVerificationStatus": "verified",
            "documents": [{"type": "passport", "side": "front", "status": "pending"}],
            "residentialAddressStatus": "present", "dac8Status": "unknown"}},
    "verificationLevel": {"uuid": "0199a000-0000-7000-8000-000000000001", "identifier": "bronze",
        "limits": {"buy": {"amount": 1000, "currencyCode": "EUR"},
            "sell": {"amount": 1000, "currencyCode": "EUR"}}}
}"#;

/// Version 1, the only one.
pub struct V1;

impl Endpoint for V1 {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/api/v1/user/info";
    const SCOPE: Option<Scope> = Some(Scope::UsersRead);
    const DOC: Doc = Doc { summary: "Read the user's profile", answer: EXAMPLE, ..Doc::NONE };
    type Caller = ClientAndUser;
    type Request = ();
    type Response = Json<Profile>;

    fn read(_: &Input, _: &ClientAndUser) -> Result<()> {
        Ok(())
    }

    async fn call(core: &Core, caller: ClientAndUser, (): ()) -> Result<Json<Profile>> {
        let mut conn = core.db.acquire().await?;
        let key = caller.client.key_of(caller.user);
        let account = Account::load(&mut conn, core, key).await?;
        let account = account.ok_or(Code::UserNotFound)?;
        Ok(Json(Profile::load(&mut conn, core, account).await?))
    }
}

/// A user's profile.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "UserProfile")]
pub struct Profile {
    /// E-mail address.
    email_address: Option<EmailAddress>,
    /// First name.
    first_name: Option<String>,
    /// Last name.
    last_name: Option<String>,
    /// Website language and country, such as `nl-be`.
    region: Option<String>,
    /// Country, by ISO 3166-1 alpha-2.
    country: Option<String>,
    /// Phone number.
    phone_number: Option<PhoneNumber>,
    /// Time of the registration.
    registration_date: DateTime<Utc>,
    /// Time at which the e-mail address was verified.
    activation_date: Option<DateTime<Utc>>,
    /// `true` for a business.
    is_business: bool,
    /// Limits of trades.
    limits: Limits,
    /// Bank accounts among `enabledAccounts`, which takes their place.
    enabled_iban_accounts: Vec<IbanAccount>,
    /// Accounts that can be used.
    enabled_accounts: Vec<EnabledAccount>,
    /// Wallets of completed purchases and of savings plans, those used last first; at most 100.
    enabled_wallet_addresses: Vec<EnabledWallet>,
    /// State of the verifications.
    status: Status,
    /// Level with its limits.
    verification_level: Level,
}

/// Limits of trades by side.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "ProfileLimits")]
struct Limits {
    /// Buying.
    buy: Limit,
    /// Selling.
    sell: Limit,
}

/// A limit of trades, and what is left of it.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "ProfileLimit")]
struct Limit {
    /// Most that may be traded in the interval.
    limit: Amount,
    /// Rest of it.
    remaining: Amount,
    /// An ISO 8601 duration.
    interval: &'static str,
}

impl Limit {
    fn new(rules: &Rules, currency: CurrencyCode, side: quotes::Side, spent: &Spent) -> Self {
        let amount = |amount| Amount::new(amount, currency);
        let remaining = amount(rules.remaining(side, spent));
        Self { limit: amount(rules.for_side(side)), remaining, interval: INTERVAL_TEXT }
    }
}

/// State of a user's verifications.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "ProfileStatus")]
struct Status {
    /// The state in a word.
    status: &'static str,
    /// The state in a sentence.
    description: &'static str,
    /// State of each verification.
    details: Details,
}

/// State of each verification of a user.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ProfileDetails")]
struct Details {
    /// Status of the AMLD5 questions.
    amld5_verification_status: String,
    /// Status of the check of the e-mail address.
    email_address_verification_status: String,
    /// Status of the identity check.
    identity_verification_status: String,
    /// Status of the agreement to the privacy statement.
    privacy_agreement_verification_status: String,
    /// Sides of documents that were sent, announced or decided on.
    documents: Vec<Side>,
    /// Status of the check of the residential address.
    residential_address_status: String,
    /// Status of the declaration of tax residency; only `missing` asks the user for it.
    dac8_status: String,
}

/// A bank account of the user.
#[derive(Debug, JsonSchema, Serialize)]
struct IbanAccount {
    /// The IBAN.
    number: String,
    /// Name of the holder.
    holder: String,
    /// `true` once it is known to be the user's.
    verified: bool,
}

impl IbanAccount {
    /// The account, if it is a bank account.
    fn from_account(account: &PaymentAccount) -> Option<Self> {
        (account.kind == AccountType::BankTransfer).then(|| Self {
            number: account.details.identifier.clone(),
            holder: account.details.holder.clone(),
            verified: account.verified,
        })
    }
}

/// An account of the user that can be used.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
struct EnabledAccount {
    /// Kind of the account.
    #[serde(rename = "type")]
    kind: AccountType,
    /// The display name.
    label: String,
    /// IBAN, masked card number, or id at the wallet provider.
    identifier: String,
    /// `true` once it is known to be the user's.
    verified: bool,
    /// `true` if its limit was raised.
    limit_raised: bool,
}

impl EnabledAccount {
    fn from_account(account: &PaymentAccount) -> Self {
        Self {
            kind: account.kind,
            label: account.label(),
            identifier: account.details.identifier.clone(),
            verified: account.verified,
            limit_raised: account.limit_raised,
        }
    }
}

/// A verification level and what it allows.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "VerificationLevel")]
struct Level {
    /// Id of the level.
    uuid: Uuid,
    /// `bronze`, `silver` or `gold`.
    identifier: String,
    /// Limits of trades.
    limits: LevelLimits,
}

/// Limits of a verification level.
#[derive(Debug, JsonSchema, Serialize)]
struct LevelLimits {
    /// Most that may be bought.
    buy: Amount,
    /// Most that may be sold.
    sell: Amount,
}

impl Profile {
    /// Loads the profile of an account.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn load(conn: &mut Connection, core: &Core, account: Account) -> Result<Self> {
        let currency = core.settings.limits.currency;
        let level = level(conn, account.level.clone(), currency).await?;
        let key = account.key();
        let trader = limits::trader(conn, key).await?;
        let rules = trader.ok_or_else(|| Error::invariant("find the limits of a user"))?.rules;
        let spent = limits::spent(conn, key).await?;
        let documents = documents::sides(conn, key).await?;
        let mut accounts = accounts::list(conn, core, key).await?;
        accounts.retain(|account| !account.disabled);
        let wallets = wallets::list(conn, core, key).await?;
        let limits = Limits {
            buy: Limit::new(&rules, currency, quotes::Side::Buy, &spent),
            sell: Limit::new(&rules, currency, quotes::Side::Sell, &spent),
        };
        let status = status(&account, documents);
        // A page may have kept a region that partners neither know nor may send.
        let is_supported =
            |region: &String| core.snapshots.current().catalogue.regions.contains(region);
        let personal = account.personal;
        Ok(Self {
            email_address: personal.email,
            first_name: personal.first_name,
            last_name: personal.last_name,
            region: account.region.filter(is_supported),
            country: account.country,
            phone_number: personal.phone_number,
            registration_date: account.created_at,
            activation_date: account.activated_at,
            is_business: account.is_business,
            limits,
            enabled_iban_accounts: accounts.iter().filter_map(IbanAccount::from_account).collect(),
            enabled_accounts: accounts.iter().map(EnabledAccount::from_account).collect(),
            enabled_wallet_addresses: wallets,
            status,
            verification_level: level,
        })
    }
}

fn status(account: &Account, documents: Vec<Side>) -> Status {
    let (status, description) = if account.deleted_at.is_some() {
        ("deleted", "The user is deleted.")
    } else if account.disabled_at.is_some() {
        ("blocked", "The user is disabled; support can help.")
    } else if account.statuses.is_verified() {
        ("validated", "The user is fully verified.")
    } else {
        ("pending", "The user has not shown everything yet.")
    };
    let statuses = account.statuses.clone();
    let details = Details {
        amld5_verification_status: statuses.amld5,
        email_address_verification_status: statuses.email,
        identity_verification_status: statuses.identity,
        privacy_agreement_verification_status: statuses.privacy_agreement,
        documents,
        residential_address_status: statuses.residential_address,
        dac8_status: statuses.dac8,
    };
    Status { status, description, details }
}

async fn level(conn: &mut Connection, identifier: String, currency: CurrencyCode) -> Result<Level> {
    let row = sqlx::query!(
        "select level_id, buy_limit, sell_limit from verification_level where identifier = $1",
        identifier,
    )
    .fetch_one(conn)
    .await?;
    let limits = LevelLimits {
        buy: Amount::new(row.buy_limit, currency),
        sell: Amount::new(row.sell_limit, currency),
    };
    Ok(Level { uuid: row.level_id, identifier, limits })
}
