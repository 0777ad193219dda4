//! Routes: which connector moves money of a payment method, and coins of an asset.

/// Direction of a leg as seen from the service.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    schemars::JsonSchema,
    serde::Deserialize,
    serde::Serialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From users.
    In,
    /// To users.
    Out,
}

impl Direction {
    /// The name in the database and on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::In => "in",
            Self::Out => "out",
        }
    }

    /// The direction of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::In, Self::Out].into_iter().find(|direction| direction.as_str() == name)
    }
}

/// What a leg of an order moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leg<'a> {
    /// Money, by a payment method.
    Method(&'a str),
    /// Coins of an asset.
    Asset(&'a str),
}

/// A route.
#[derive(Clone, Debug)]
pub struct Route {
    /// The partner's slug; `None` for every live one.
    pub partner: Option<String>,
    /// The payment method, of a route of money.
    pub method: Option<String>,
    /// The asset, of a route of coins.
    pub asset: Option<String>,
    /// Direction.
    pub direction: Direction,
    /// The connector.
    pub connector: String,
}

/// All routes, in their order.
#[derive(Clone, Debug, Default)]
pub struct Routes(pub Vec<Route>);

impl Routes {
    /// The connector of a leg; the first match counts. Also in SQL, as `routed_connector`: a test
    /// client's legs go only where a route names the client.
    pub fn connector(
        &self,
        (partner, is_test): (&str, bool),
        direction: Direction,
        leg: Leg<'_>,
    ) -> Option<&str> {
        let of_partner = |route: &&Route| match &route.partner {
            Some(slug) => slug == partner,
            None => !is_test,
        };
        let of_leg = |route: &&Route| match leg {
            Leg::Method(method) => route.method.as_deref() == Some(method),
            Leg::Asset(asset) => route.asset.as_deref() == Some(asset),
        };
        let mut routes = self.0.iter().filter(|route| route.direction == direction);
        routes.find(|route| of_partner(route) && of_leg(route)).map(|route| &*route.connector)
    }

    /// True if any payment method of the partner has a route.
    pub fn has_method(&self, (partner, is_test): (&str, bool), direction: Direction) -> bool {
        let methods = self.0.iter().filter_map(|route| route.method.as_deref());
        let mut methods = methods.map(Leg::Method);
        methods.any(|method| self.connector((partner, is_test), direction, method).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(partner: Option<&str>, method: Option<&str>, connector: &str) -> Route {
        Route {
            partner: partner.map(str::to_owned),
            method: method.map(str::to_owned),
            asset: method.is_none().then(|| "ETH".to_owned()),
            direction: Direction::In,
            connector: connector.to_owned(),
        }
    }

    #[test]
    fn the_first_match_counts_and_test_clients_are_named() {
        let routes = Routes(vec![
            route(Some("acme"), Some("creditCard"), "own"),
            route(None, Some("creditCard"), "cards"),
            route(None, None, "chain"),
        ]);
        let of = |partner, leg| routes.connector(partner, Direction::In, leg);
        let card = Leg::Method("creditCard");
        assert_eq!(of(("acme", false), card), Some("own"));
        assert_eq!(of(("other", false), card), Some("cards"));
        assert_eq!(of(("acme", true), card), Some("own"));
        assert_eq!(of(("other", true), card), None);
        assert_eq!(of(("other", false), Leg::Asset("ETH")), Some("chain"));
        assert_eq!(of(("other", false), Leg::Asset("BTC")), None);
        assert_eq!(routes.connector(("other", false), Direction::Out, card), None);
        assert!(routes.has_method(("other", false), Direction::In));
        assert!(!routes.has_method(("other", true), Direction::In));
    }
}
