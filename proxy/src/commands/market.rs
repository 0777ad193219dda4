//! `rampart currency`, `pair`, `payment-method`, `price`, `offer` and `maintenance-window`.

use clap::Subcommand;
use serde::Serialize;
use serde_json::json;

use super::{Call, Members, ObjectArgs, Page, StartupError, Target};

pub(super) const CURRENCIES: &str =
    "CODE code, KIND kind, NAME name, DECIMALS decimals, NETWORK network, CAIP-19 caip19";

/// Currencies, fiat and crypto.
#[derive(Debug, Subcommand)]
pub(crate) enum Currency {
    /// List currencies by their codes.
    List(Page),
}

impl Call for Currency {
    fn call(&self, target: &Target) -> Result<(), StartupError> {
        let Self::List(page) = self;
        target.list("currencies", page, CURRENCIES)
    }
}

pub(super) const PAIRS: &str = "PAIR pair, PRICE price, BUY buy, SELL sell";

/// Currency pairs.
#[derive(Debug, Serialize, Subcommand)]
#[serde(rename_all_fields = "camelCase", untagged)]
pub(crate) enum Pair {
    /// List pairs with their prices and directions.
    List(Page),
    /// Change a pair: `buy.status=disabled`, `spreadPercentage=1.5`, `quoteLifetimeSeconds=60`.
    Set {
        /// The pair, such as BTC-EUR.
        pair: String,
        #[command(flatten)]
        members: Members,
    },
}

impl Call for Pair {
    fn call(&self, target: &Target) -> Result<(), StartupError> {
        match self {
            Self::List(page) => target.list("pairs", page, PAIRS),
            Self::Set { .. } => target.call("PATCH pairs/{pair}", self),
        }
    }
}

pub(super) const PAYMENT_METHODS: &str =
    "CODE code, ENABLED enabled, LABEL label, LIMIT limit, FEES fees, EXPIRATION expirationPeriod";

/// Payment methods.
#[derive(Debug, Serialize, Subcommand)]
#[serde(rename_all_fields = "camelCase", untagged)]
pub(crate) enum PaymentMethod {
    /// List methods with their terms.
    List(Page),
    /// Change a method: `enabled=false`, `limit=5000`, `expirationPeriod=3600`.
    Set {
        /// The method's code, such as creditCard.
        code: String,
        #[command(flatten)]
        members: Members,
    },
}

impl Call for PaymentMethod {
    fn call(&self, target: &Target) -> Result<(), StartupError> {
        match self {
            Self::List(page) => target.list("payment-methods", page, PAYMENT_METHODS),
            Self::Set { .. } => target.call("PATCH payment-methods/{code}", self),
        }
    }
}

pub(super) const PRICES: &str = "\
    PAIR pair, STATUS status, PRICE price, FIXED fixed, OBSERVED observedAt, UNTIL validUntil, \
    SOURCES SAY deviating";
/// The end of the quotes sealed so far: the edge takes a time to come for its own now. A constant,
/// because the call that a second person has agreed to is made again as it was.
const SO_FAR: &str = "9999-12-31T23:59:59Z";

/// Prices.
#[derive(Debug, Subcommand)]
pub(crate) enum Price {
    /// Set the mid price of a pair.
    Set {
        /// Such as BTC-EUR.
        pair: String,
        /// Fiat for one unit of crypto, such as 51234.56.
        price: serde_json::Number,
        /// Seconds after which it is too old to quote; the pair's if left out. Live partners get no quote by
        /// a price without either.
        #[arg(long, value_name = "SECONDS")]
        max_age_seconds: Option<u32>,
        /// Void the quotes that were sealed so far: the price before was wrong.
        #[arg(long)]
        void_quotes: bool,
    },
    /// Void the quotes of a pair that were sealed so far.
    VoidQuotes {
        /// Such as BTC-EUR.
        pair: String,
    },
    /// List pairs with their prices, and what the sources say.
    List(Page),
}

impl Call for Price {
    fn call(&self, target: &Target) -> Result<(), StartupError> {
        match self {
            Self::Set { pair, price, max_age_seconds, void_quotes } => {
                let mut body = json!({"pair": pair, "price": price});
                if let Some(seconds) = max_age_seconds {
                    body["maxAgeSeconds"] = json!(seconds);
                }
                if *void_quotes {
                    body["quotesValidFrom"] = json!(SO_FAR);
                }
                target.call("PUT prices/{pair}", &body)
            }
            Self::VoidQuotes { pair } => {
                let body = json!({"pair": pair, "quotesValidFrom": SO_FAR});
                target.call("PATCH pairs/{pair}", &body)
            }
            Self::List(page) => target.list("prices", page, PRICES),
        }
    }
}

/// Offers.
#[derive(Debug, Serialize, Subcommand)]
#[serde(rename_all_fields = "camelCase", untagged)]
pub(crate) enum Offer {
    /// End an offer now.
    Expire {
        /// The offer's uuid.
        uuid: String,
    },
}

impl Call for Offer {
    fn call(&self, target: &Target) -> Result<(), StartupError> {
        target.call("POST offers/{uuid}/expire", self)
    }
}

pub(super) const WINDOWS: &str = "\
    ID id, STATUS status, PAIR pair, METHOD paymentMethod, STARTS startsAt, ENDS endsAt, \
    BY createdBy, REASON reason";

/// Maintenance windows of pairs and payment methods.
#[derive(Debug, Serialize, Subcommand)]
#[serde(rename_all_fields = "camelCase", untagged)]
pub(crate) enum MaintenanceWindow {
    /// List windows, the latest start first.
    List(Page),
    /// Close a pair, or a payment method, from a time to another one.
    Add {
        /// The pair, such as BTC-EUR.
        #[arg(long, required_unless_present = "payment_method", conflicts_with = "payment_method")]
        pair: Option<String>,
        /// The payment method, such as creditCard, in place of a pair.
        #[arg(long, value_name = "CODE")]
        payment_method: Option<String>,
        /// Its start, such as 2026-03-01T12:00:00Z; now if not given.
        #[arg(long, value_name = "TIME")]
        starts_at: Option<String>,
        /// Its end.
        #[arg(long, value_name = "TIME")]
        ends_at: String,
        /// The reason, for the audit.
        #[arg(long)]
        reason: String,
    },
    /// End a window that runs, or withdraw one to come.
    End(ObjectArgs),
}

impl Call for MaintenanceWindow {
    fn call(&self, target: &Target) -> Result<(), StartupError> {
        match self {
            Self::List(page) => target.list("maintenance-windows", page, WINDOWS),
            Self::Add { .. } => target.call("POST maintenance-windows", self),
            Self::End(window) => target.call("DELETE maintenance-windows/{id}", window),
        }
    }
}
