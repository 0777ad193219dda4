//! What a live client needs before its first order.

use http::StatusCode;
use serde_json::json;

use crate::Core;
use crate::http::reply::Reply;
use crate::platform::error::Result;
use crate::trading::catalogue::{Catalogue, Direction, Leg, Pair};

impl Core {
    /// Needs of a live client of this slug that are not met, in words; of any, without one.
    pub fn missing_for_live(&self, slug: Option<&str>) -> Vec<&'static str> {
        let catalogue = &self.snapshots.current().catalogue;
        let now = self.clock.now();
        let settings = &self.settings;
        let needs = [
            ("route", has_route(catalogue, slug.unwrap_or_default())),
            ("live price", catalogue.pairs.values().any(|pair| pair.observed_price(now).is_some())),
            ("configured master key", settings.keys.is_configured()),
            ("mail", settings.mail.smtp_url.is_some()),
            ("documents", settings.documents.is_configured()),
        ];
        needs.into_iter().filter_map(|(need, met)| (!met).then_some(need)).collect()
    }

    /// The refusal to make this partner live, while something is missing.
    ///
    /// # Errors
    /// When it cannot be serialized.
    pub(crate) fn refuse_live(&self, slug: &str) -> Result<Option<Reply>> {
        let missing = self.missing_for_live(Some(slug));
        if missing.is_empty() {
            return Ok(None);
        }
        let reason = format!("a live partner needs: {}", missing.join(", "));
        Reply::json(StatusCode::CONFLICT, &json!({"error": reason, "missing": missing})).map(Some)
    }
}

/// True if a live partner has a route for the money and the coins of some purchase.
fn has_route(catalogue: &Catalogue, slug: &str) -> bool {
    let (partner, routes) = ((slug, false), &catalogue.routes);
    let leads = |pair: &Pair| {
        let asset = pair.base.code().to_string();
        routes.connector(partner, Direction::Out, Leg::Asset(&asset)).is_some()
    };
    routes.has_method(partner, Direction::In) && catalogue.pairs.values().any(|pair| leads(pair))
}
