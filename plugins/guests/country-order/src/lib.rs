//! Payment methods in the order usual in a country, after the one the user paid with last.
//!
//! - `countries`: `DE=bank-transfer,card` puts kinds (or ids) of methods in order for one country;
//!   `*=...` is for every other
//! - `hide`: ids that are never shown

use rampart_guest::method_order::*;

struct CountryOrder;

rampart_guest::method_order_policy!(CountryOrder);

/// Used when `countries` is not set.
const DEFAULT_COUNTRIES: [(&str, &str); 4] = [
    ("AT", "instant-transfer,bank-transfer,card"),
    ("DE", "instant-transfer,bank-transfer,card"),
    ("NL", "instant-transfer,card,bank-transfer"),
    ("*", "card,wallet,instant-transfer,bank-transfer"),
];

impl MethodOrderPolicy for CountryOrder {
    const ABOUT: About = About {
        name: "rampart/country-order",
        version: "1.0.0",
        summary: "Orders payment methods by country, the last used one first.",
        settings: &[
            Setting::optional("countries", SettingType::Texts, "COUNTRY=KIND,KIND or *=KIND,KIND"),
            Setting::optional("hide", SettingType::Texts, "ids that are never shown"),
        ],
        keys: &[],
    };

    fn validate(config: &Config) -> Result<(), Problem> {
        match config.texts("countries").iter().find(|text| !text.contains('=')) {
            Some(text) => Err(Problem::new("countries", format!("`{text}` has no `=`"))),
            None => Ok(()),
        }
    }

    fn rank(_: CallContext, config: Config, request: OrderRequest) -> Result<Ranking, PolicyError> {
        let OrderRequest { user, methods, .. } = request;
        let (country, order) = preferences(&config, &user.country);
        let hide = config.texts("hide");
        let (mut ranked, mut hidden) = (Vec::with_capacity(methods.len()), Vec::new());
        for Method { id, kind, cost, .. } in methods {
            if hide.contains(&id) {
                hidden.push(id);
                continue;
            }
            let rank = order.iter().position(|preference| preference.matches(kind, &id));
            let is_other = user.last_used.as_ref() != Some(&id);
            ranked.push(((is_other, rank.unwrap_or(usize::MAX), cost.unwrap_or(i32::MAX)), id));
        }
        // The sort is stable: methods that compare equal keep the host's order.
        ranked.sort_by_key(|(key, _)| *key);

        let shown = ranked.into_iter().enumerate().map(|(index, ((is_other, ..), id))| {
            let badge = match (is_other, index) {
                (false, _) => Some("last-used".into()),
                (true, 0) => Some("recommended".into()),
                (true, _) => None,
            };
            Placement { id, badge }
        });
        let rule = match country {
            "*" => "any-country".into(),
            country => ["country-", &country.to_ascii_lowercase()].concat(),
        };
        Ok(Ranking { shown: shown.collect(), hidden, rule })
    }
}

/// One entry of an order: a kind of methods, or the id of one.
struct Preference<'a> {
    kind: Option<MethodKind>,
    name: &'a str,
}

impl<'a> Preference<'a> {
    /// A guest compares texts byte by byte, so names are resolved to kinds once, not per method.
    fn parse(name: &'a str) -> Self {
        let kind = match name {
            "card" => Some(MethodKind::Card),
            "bank-transfer" => Some(MethodKind::BankTransfer),
            "wallet" => Some(MethodKind::Wallet),
            "instant-transfer" => Some(MethodKind::InstantTransfer),
            "cash" => Some(MethodKind::Cash),
            "other" => Some(MethodKind::Other),
            _ => None,
        };
        Self { kind, name }
    }

    fn matches(&self, kind: MethodKind, id: &str) -> bool {
        self.kind == Some(kind) || self.name == id
    }
}

/// The entry for `country`, or else the one for all.
fn preferences<'a>(config: &'a Config, country: &str) -> (&'a str, Vec<Preference<'a>>) {
    let texts = config.texts("countries");
    let configured = texts.iter().filter_map(|text| text.split_once('='));
    let defaults = DEFAULT_COUNTRIES.iter().copied().filter(|_| texts.is_empty());
    let lines = configured.chain(defaults);
    let line = |name: &str| lines.clone().find(|(country, _)| *country == name);
    let (name, order) = line(country).or_else(|| line("*")).unwrap_or(("*", ""));
    (name, order.split(',').map(str::trim).map(Preference::parse).collect())
}
