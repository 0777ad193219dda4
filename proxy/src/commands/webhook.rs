//! `rampart webhook list|remove|test`.

use clap::{Args, Subcommand};
use http::Method;

use super::{Body, Call, Page, StartupError, Target};

const COLUMNS: &str =
    "ID id, STATE state, FAILING SINCE failingSince, EVENTS events, CREATED createdAt, URL url";

/// Webhook endpoints of partners.
#[derive(Debug, Subcommand)]
pub(crate) enum Webhook {
    /// List a partner's endpoints, oldest first.
    List {
        /// The partner's slug.
        partner: String,
        #[command(flatten)]
        page: Page,
    },
    /// Remove an endpoint: what waited for it is not sent any more.
    Remove(EndpointArgs),
    /// Send a test event to one endpoint.
    Test(EndpointArgs),
}

/// An endpoint of a partner.
#[derive(Args, Debug)]
pub(crate) struct EndpointArgs {
    /// The partner's slug.
    partner: String,
    /// The endpoint's id, as `webhook list` shows it.
    id: String,
}

impl Call for Webhook {
    fn call(self, target: &Target) -> Result<(), StartupError> {
        match self {
            Self::List { partner, page } => {
                page.print(target, &["partners", &partner, "webhooks"], [], COLUMNS)
            }
            Self::Remove(EndpointArgs { partner, id }) => {
                target.send(Method::DELETE, &["partners", &partner, "webhooks", &id], Body::None)
            }
            Self::Test(EndpointArgs { partner, id }) => {
                let test: &[&str] = &["partners", &partner, "webhooks", &id, "test"];
                target.send(Method::POST, test, Body::None)
            }
        }
    }
}
