//! `rampart user`, and `rampart savings-plan` of users.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde::Serialize;

use super::{Call, Members, Page, StartupError, Target};

pub(super) const ACCOUNTS: &str = "\
    ID accountId, TYPE type, NAME name, VERIFIED verified, DISABLED disabled, LIMIT limit, \
    VERSION version, IDENTIFIER accountIdentifier";

pub(super) const USERS: &str = "\
    UUID uuid, PARTNER partner, EMAIL email, FIRST NAME firstName, LAST NAME lastName, \
    BUSINESS businessName, PHONE phoneNumber, LEVEL level, IDENTITY identityStatus, \
    CREATED createdAt";

/// Users, their accounts and documents. Every look at personal data stands in the audit.
#[derive(Debug, Serialize, Subcommand)]
#[serde(rename_all_fields = "camelCase", untagged)]
pub(crate) enum User {
    /// Search users by everything that is given, newest first.
    #[command(visible_alias = "search")]
    List {
        /// The whole e-mail address.
        #[arg(long)]
        email: Option<String>,
        /// The full name of a person or a business; accents, case and order do not matter.
        #[arg(long)]
        name: Option<String>,
        /// The whole phone number, such as +31612345678.
        #[arg(long)]
        phone: Option<String>,
        /// A partner's identifier of the user.
        #[arg(long)]
        identifier: Option<String>,
        /// The partner's slug.
        #[arg(long)]
        partner: Option<String>,
        #[command(flatten)]
        page: Page,
    },
    /// Show a user.
    Show(UserArgs),
    /// Change a user's checks, level, limits or documents. `disabled=true` ends the user's logins,
    /// `deleted=true` erases the personal data, for good.
    Set {
        /// The user's uuid.
        uuid: String,
        #[command(flatten)]
        members: Members,
    },
    /// List a user's bank accounts, cards and wallets.
    Accounts {
        /// The user's uuid.
        uuid: String,
        #[command(flatten)]
        page: Page,
    },
    /// Open an account for a user: `type=bankTransfer identifier=NL58… name="Ada Lovelace"`.
    OpenAccount {
        /// The user's uuid.
        uuid: String,
        #[command(flatten)]
        members: Members,
    },
    /// Change an account: `verified=true version=v…`, `disabled=true`, `limit=500`.
    SetAccount {
        /// The user's uuid.
        uuid: String,
        /// The account's identifier, as `accounts` lists it.
        account: String,
        #[command(flatten)]
        members: Members,
    },
    /// Write the image of a proof of ownership to a file.
    Proof(Image),
    /// Write the image of a side of an identity document to a file.
    Document(Image),
    /// Open what is kept of an erased user. It takes the role `compliance`: that of an owner is not enough.
    RetainedRecord {
        /// The user's uuid.
        uuid: String,
        /// For the audit.
        #[arg(long)]
        reason: String,
    },
    /// Write an image that is kept of an erased user to a file. It takes the role `compliance`.
    RetainedDocument {
        #[command(flatten)]
        #[serde(flatten)]
        image: Image,
        /// For the audit.
        #[arg(long)]
        reason: String,
    },
}

/// One user.
#[derive(Debug, Args, Serialize)]
pub(crate) struct UserArgs {
    /// The user's uuid.
    uuid: String,
}

/// An image of a user, and the file for it.
#[derive(Debug, Args, Serialize)]
pub(crate) struct Image {
    /// The user's uuid.
    uuid: String,
    /// The image's id.
    id: String,
    /// The file that is written.
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    out: PathBuf,
}

impl Call for User {
    fn call(&self, target: &Target) -> Result<(), StartupError> {
        const RETAINED: &str = "POST users/{uuid}/retained-record/documents/{id}";
        let save = |call, image: &Image| target.save(&image.out, call, image);
        match self {
            Self::List { .. } => target.list("users", self, USERS),
            Self::Show(user) => target.call("GET users/{uuid}", user),
            Self::Set { .. } => target.call("PATCH users/{uuid}", self),
            Self::Accounts { .. } => target.list("users/{uuid}/accounts", self, ACCOUNTS),
            Self::OpenAccount { .. } => target.call("POST users/{uuid}/accounts", self),
            Self::SetAccount { .. } => target.call("PATCH users/{uuid}/accounts/{account}", self),
            Self::Proof(image) => save("GET users/{uuid}/proofs/{id}", image),
            Self::Document(image) => save("GET users/{uuid}/documents/{id}", image),
            Self::RetainedRecord { .. } => target.call("POST users/{uuid}/retained-record", self),
            Self::RetainedDocument { image, .. } => target.save(&image.out, RETAINED, self),
        }
    }
}

pub(super) const PLANS: &str = "\
    CODE code, PARTNER partner, USER userId, CURRENCY cryptoCurrency, FREQUENCY frequency, \
    HIDDEN hidden, CREATED createdAt";

/// Savings plans: codes to which users deposit.
#[derive(Debug, Serialize, Subcommand)]
#[serde(rename_all_fields = "camelCase", untagged)]
pub(crate) enum SavingsPlan {
    /// List savings plans that meet everything that is given, newest first.
    List {
        /// The partner's slug.
        #[arg(long)]
        partner: Option<String>,
        /// The user's uuid.
        #[arg(long, value_name = "UUID")]
        user: Option<String>,
        /// The plan's code.
        #[arg(long)]
        code: Option<String>,
        #[command(flatten)]
        page: Page,
    },
    /// Show a savings plan with its deposits.
    Show {
        /// The plan's code.
        code: String,
    },
    /// Open a savings plan: `cryptoCurrency=BTC walletAddress=bc1q…`.
    Open {
        /// The user's uuid.
        uuid: String,
        #[command(flatten)]
        members: Members,
    },
    /// Report a deposit that has arrived: the same reference is the same deposit.
    Deposit {
        /// The plan's code.
        code: String,
        /// Above zero.
        amount: serde_json::Number,
        /// The currency's code.
        #[serde(rename = "currencyCode")]
        currency: String,
        /// The bank's own name for it.
        #[arg(long)]
        reference: String,
    },
}

impl Call for SavingsPlan {
    fn call(&self, target: &Target) -> Result<(), StartupError> {
        match self {
            Self::List { .. } => target.list("dca-codes", self, PLANS),
            Self::Show { .. } => target.call("GET dca-codes/{code}", self),
            Self::Open { .. } => target.call("POST users/{uuid}/dca-codes", self),
            Self::Deposit { .. } => target.call("POST dca-codes/{code}/deposits", self),
        }
    }
}
