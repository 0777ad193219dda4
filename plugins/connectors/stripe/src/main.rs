//! A connector that takes cards by Stripe's API: payments, refunds, disputes.
//!
//! Commands become calls with the command's id as idempotency key. Facts come by webhook and by
//! polling; either way the object is read anew, so that both report the same.

mod amounts;
mod api;
mod commands;
mod events;
mod facts;
#[cfg(test)]
mod fake;
mod polling;
mod settings;
mod signature;
mod webhooks;

use std::process::ExitCode;
use std::sync::Arc;

use rampart_connector::{Client, program};

use self::api::Stripe;
use self::events::PassedOver;
use self::settings::Settings;

/// The connector: an edge, and the provider's account.
#[derive(Debug)]
pub(crate) struct Connector {
    edge: Client,
    stripe: Stripe,
    passed_over: PassedOver,
}

impl Connector {
    fn new(settings: &Settings) -> Result<Self, String> {
        settings.check()?;
        let edge = Client::new(&settings.edge).map_err(|error| error.to_string())?;
        let stripe = Stripe::new(&settings.stripe)?;
        Ok(Self { edge, stripe, passed_over: PassedOver::default() })
    }
}

/// Checks settings, edge and account, and changes nothing.
async fn check(settings: Settings) -> Result<(), String> {
    let connector = Connector::new(&settings)?;
    if let Some(webhooks) = &settings.webhooks {
        webhooks.secret.read().map_err(|error| format!("webhooks.secret: {error}"))?;
    }
    connector.edge.check().await?;
    connector.stripe.check().await
}

/// Serves until something cannot go on.
async fn serve(settings: Settings) -> Result<(), String> {
    let connector = Arc::new(Connector::new(&settings)?);
    let listening = async {
        match &settings.webhooks {
            Some(webhooks) => webhooks::listen(Arc::clone(&connector), webhooks).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        ended = commands::serve(Arc::clone(&connector)) => ended,
        ended = polling::poll(&connector, &settings.polling) => ended,
        ended = listening => ended,
    }
}

fn main() -> ExitCode {
    program::run(check, serve)
}
