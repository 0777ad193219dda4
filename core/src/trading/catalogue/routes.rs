//! Routes: which connector moves money of a payment method, and coins of an asset.

use std::collections::HashMap;

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

rampart_types::named_values! {
    pub Direction {
        In = "in",
        Out = "out",
    }
}

/// The money or the coins that a leg of an order moves.
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

/// All routes, by what they lead. A request asks for each of its partner's payment methods, so that
/// an answer must not take longer the more partners have routes.
#[derive(Debug, Default)]
pub struct Routes {
    /// Those for every live partner.
    of_all: Destinations,
    /// Those of one partner, by its slug.
    of_partner: HashMap<String, Destinations>,
}

/// Connectors of the money and the coins of both directions.
#[derive(Debug, Default)]
struct Destinations {
    /// By payment method.
    methods: [HashMap<String, Destination>; 2],
    /// By asset.
    assets: [HashMap<String, Destination>; 2],
}

/// The first route of a leg.
#[derive(Debug)]
struct Destination {
    /// The route's position among all routes.
    position: usize,
    connector: String,
}

impl FromIterator<Route> for Routes {
    /// The routes in their order.
    fn from_iter<I: IntoIterator<Item = Route>>(routes: I) -> Self {
        let mut all = Self::default();
        for (position, route) in routes.into_iter().enumerate() {
            let Route { partner, method, asset, direction, connector } = route;
            let destinations = match partner {
                Some(slug) => all.of_partner.entry(slug).or_default(),
                None => &mut all.of_all,
            };
            let methods = method.map(|method| (&mut destinations.methods, method));
            let assets = asset.map(|asset| (&mut destinations.assets, asset));
            if let Some((legs, leg)) = methods.or(assets) {
                let destination = Destination { position, connector };
                legs[direction as usize].entry(leg).or_insert(destination);
            }
        }
        all
    }
}

impl Routes {
    /// The connector of a leg; the first match counts. Also in SQL, as `leg_route`: a test
    /// client's legs go only where a route names the client.
    pub fn connector(
        &self,
        partner: &str,
        is_test: bool,
        direction: Direction,
        leg: Leg<'_>,
    ) -> Option<&str> {
        let routes = self.applicable(partner, is_test);
        let matches = routes.filter_map(|destinations| match leg {
            Leg::Method(method) => destinations.methods[direction as usize].get(method),
            Leg::Asset(asset) => destinations.assets[direction as usize].get(asset),
        });
        matches.min_by_key(|route| route.position).map(|route| &*route.connector)
    }

    /// True if any payment method of the partner has a route.
    pub fn has_method(&self, partner: &str, is_test: bool, direction: Direction) -> bool {
        let mut routes = self.applicable(partner, is_test);
        routes.any(|destinations| !destinations.methods[direction as usize].is_empty())
    }

    /// The connectors and assets that coins are routed to in this direction, each at least once.
    pub fn assets(&self, direction: Direction) -> impl Iterator<Item = (&str, &str)> {
        let routes = self.of_partner.values().chain([&self.of_all]);
        let assets = routes.flat_map(move |destinations| &destinations.assets[direction as usize]);
        assets.map(|(asset, route)| (&*route.connector, &**asset))
    }

    /// The routes of the partner, and those for every live one.
    fn applicable(&self, partner: &str, is_test: bool) -> impl Iterator<Item = &Destinations> {
        let of_all = (!is_test).then_some(&self.of_all);
        self.of_partner.get(partner).into_iter().chain(of_all)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;
    use proptest::sample::select;

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
        let routes = Routes::from_iter([
            route(Some("acme"), Some("creditCard"), "own"),
            route(None, Some("creditCard"), "cards"),
            route(None, None, "chain"),
        ]);
        let of = |partner, is_test, leg| routes.connector(partner, is_test, Direction::In, leg);
        let card = Leg::Method("creditCard");
        assert_eq!(of("acme", false, card), Some("own"));
        assert_eq!(of("other", false, card), Some("cards"));
        assert_eq!(of("acme", true, card), Some("own"));
        assert_eq!(of("other", true, card), None);
        assert_eq!(of("other", false, Leg::Asset("ETH")), Some("chain"));
        assert_eq!(of("other", false, Leg::Asset("BTC")), None);
        assert_eq!(routes.connector("other", false, Direction::Out, card), None);
        assert!(routes.has_method("other", false, Direction::In));
        assert!(!routes.has_method("other", true, Direction::In));
    }

    /// Routes of few partners, methods and assets, so that many match twice.
    fn any_route() -> impl Strategy<Value = Route> {
        let name = |names: &'static [&'static str]| select(names).prop_map(str::to_owned);
        let partner = option::of(name(&["acme", "other"]));
        let leg = (any::<bool>(), name(&["a", "b"]));
        let direction = select(&[Direction::In, Direction::Out][..]);
        (partner, leg, direction, name(&["one", "two"])).prop_map(
            |(partner, (is_method, leg), direction, connector)| {
                let (method, asset) = if is_method { (Some(leg), None) } else { (None, Some(leg)) };
                Route { partner, method, asset, direction, connector }
            },
        )
    }

    /// The first route that matches, looked for from the beginning.
    fn first<'a>(
        routes: &'a [Route],
        partner: &str,
        is_test: bool,
        direction: Direction,
        leg: Leg<'_>,
    ) -> Option<&'a str> {
        let found = routes.iter().find(|route| {
            let of_partner = route.partner.as_deref().map_or(!is_test, |slug| slug == partner);
            let of_leg = match leg {
                Leg::Method(method) => route.method.as_deref() == Some(method),
                Leg::Asset(asset) => route.asset.as_deref() == Some(asset),
            };
            of_partner && of_leg && route.direction == direction
        });
        found.map(|route| &*route.connector)
    }

    proptest! {
        #[test]
        fn the_first_of_all_routes_that_match_counts(listed in vec(any_route(), 0..12)) {
            let routes: Routes = listed.iter().cloned().collect();
            for (partner, is_test) in [("acme", false), ("acme", true), ("third", false), ("third", true)] {
                for direction in [Direction::In, Direction::Out] {
                    for leg in [Leg::Method("a"), Leg::Method("b"), Leg::Asset("a"), Leg::Asset("b")] {
                        let expected = first(&listed, partner, is_test, direction, leg);
                        let found = routes.connector(partner, is_test, direction, leg);
                        prop_assert_eq!(found, expected);
                        if let (Some(connector), Leg::Asset(asset)) = (expected, leg) {
                            let mut assets = routes.assets(direction);
                            prop_assert!(assets.any(|routed| routed == (connector, asset)));
                        }
                    }
                    let methods = [Leg::Method("a"), Leg::Method("b")];
                    let any = methods.iter().any(|leg| {
                        first(&listed, partner, is_test, direction, *leg).is_some()
                    });
                    prop_assert_eq!(routes.has_method(partner, is_test, direction), any);
                }
            }
        }
    }
}
