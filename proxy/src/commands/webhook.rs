//! `rampart webhook list|remove|test`.

use clap::{Args, Subcommand};
use http::Method;

use super::{Body, Page, Run, StartupError, Target, path};

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
    #[command(flatten)]
    target: Target,
}

impl Run for Webhook {
    fn run(self) -> Result<(), StartupError> {
        match self {
            Self::List { partner, page } => {
                page.print(&path(&["partners", &partner, "webhooks"]), [], COLUMNS)
            }
            Self::Remove(endpoint) => {
                let path = path(&["partners", &endpoint.partner, "webhooks", &endpoint.id]);
                endpoint.target.send(Method::DELETE, &path, Body::None)
            }
            Self::Test(endpoint) => {
                let path = path(&["partners", &endpoint.partner, "webhooks", &endpoint.id, "test"]);
                endpoint.target.send(Method::POST, &path, Body::None)
            }
        }
    }
}
