//! `rampart user`, and `rampart savings-plan` of users.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use http::Method;
use serde_json::json;

use super::{Body, Call, Members, Page, StartupError, Target, path};

pub(super) const ACCOUNTS: &str = "\
    ID accountId, TYPE type, NAME name, VERIFIED verified, DISABLED disabled, LIMIT limit, \
    VERSION version, IDENTIFIER accountIdentifier";

pub(super) const USERS: &str = "\
    UUID uuid, PARTNER partner, EMAIL email, FIRST NAME firstName, LAST NAME lastName, \
    BUSINESS businessName, PHONE phoneNumber, LEVEL level, IDENTITY identityStatus, \
    CREATED createdAt";

/// Users, their accounts and documents. Every look at personal data stands in the audit.
#[derive(Debug, Subcommand)]
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
    /// Change a user's checks, level, limits or documents, disable or erase the user.
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
    /// Open an account for a user: `type=bankTransfer identifier=NL58…`.
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
    /// Open what is kept of an erased user.
    RetainedRecord {
        #[command(flatten)]
        user: UserArgs,
        /// For the audit.
        #[arg(long)]
        reason: String,
    },
    /// Write an image that is kept of an erased user to a file.
    RetainedDocument {
        #[command(flatten)]
        image: Image,
        /// For the audit.
        #[arg(long)]
        reason: String,
    },
}

/// One user.
#[derive(Debug, Args)]
pub(crate) struct UserArgs {
    /// The user's uuid.
    uuid: String,
}

/// An image of a user, and the file for it.
#[derive(Debug, Args)]
pub(crate) struct Image {
    /// The user's uuid.
    uuid: String,
    /// The image's id.
    id: String,
    /// The file that is written.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

impl Image {
    /// Asks for the image and writes it.
    fn save(
        &self,
        target: &Target,
        method: Method,
        folder: &[&str],
        body: Body,
    ) -> Result<(), StartupError> {
        let path = [path(&["users", &self.uuid]), path(folder), path(&[&self.id])].join("/");
        target.save(&self.out, method, &path, body)
    }
}

impl Call for User {
    fn call(self, target: &Target) -> Result<(), StartupError> {
        match self {
            Self::List { email, name, phone, identifier, partner, page } => {
                let criteria = [
                    ("email", email),
                    ("name", name),
                    ("phone", phone),
                    ("identifier", identifier),
                    ("partner", partner),
                ];
                page.print(target, &["users"], criteria, USERS)
            }
            Self::Show(user) => target.get(&["users", &user.uuid]),
            Self::Set { uuid, members } => members.send(target, Method::PATCH, &["users", &uuid]),
            Self::Accounts { uuid, page } => {
                page.print(target, &["users", &uuid, "accounts"], [], ACCOUNTS)
            }
            Self::OpenAccount { uuid, members } => {
                members.send(target, Method::POST, &["users", &uuid, "accounts"])
            }
            Self::SetAccount { uuid, account, members } => {
                members.send(target, Method::PATCH, &["users", &uuid, "accounts", &account])
            }
            Self::Proof(image) => image.save(target, Method::GET, &["proofs"], Body::None),
            Self::Document(image) => image.save(target, Method::GET, &["documents"], Body::None),
            Self::RetainedRecord { user, reason } => {
                let body = json!({ "reason": reason });
                target.send(Method::POST, &["users", &user.uuid, "retained-record"], body)
            }
            Self::RetainedDocument { image, reason } => {
                let body = Body::Json(json!({ "reason": reason }));
                image.save(target, Method::POST, &["retained-record", "documents"], body)
            }
        }
    }
}

pub(super) const PLANS: &str = "\
    CODE code, PARTNER partner, USER userId, CURRENCY cryptoCurrency, FREQUENCY frequency, \
    HIDDEN hidden, CREATED createdAt";

/// Savings plans: codes to which users deposit.
#[derive(Debug, Subcommand)]
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
        currency: String,
        /// The bank's own name for it.
        #[arg(long)]
        reference: String,
    },
}

impl Call for SavingsPlan {
    fn call(self, target: &Target) -> Result<(), StartupError> {
        match self {
            Self::List { partner, user, code, page } => {
                let criteria = [("partner", partner), ("user", user), ("code", code)];
                page.print(target, &["dca-codes"], criteria, PLANS)
            }
            Self::Show { code } => target.get(&["dca-codes", &code]),
            Self::Open { uuid, members } => {
                members.send(target, Method::POST, &["users", &uuid, "dca-codes"])
            }
            Self::Deposit { code, amount, currency, reference } => {
                let body =
                    json!({"amount": amount, "currencyCode": currency, "reference": reference});
                target.send(Method::POST, &["dca-codes", &code, "deposits"], body)
            }
        }
    }
}
