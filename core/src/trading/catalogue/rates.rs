//! Rates between currencies, derived from the prices of pairs.

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;

use super::Catalogue;
use rampart_types::CurrencyCode;

impl Catalogue {
    /// An amount in another currency, not rounded, at the mid prices of `now`; `None` without a fresh
    /// price.
    pub(crate) fn convert(
        &self,
        amount: Decimal,
        from: CurrencyCode,
        to: CurrencyCode,
        now: DateTime<Utc>,
    ) -> Option<Decimal> {
        if from == to {
            return Some(amount);
        }
        if let Some(pair) = self.pair(from, to) {
            return amount.checked_mul(pair.live_price(now)?);
        }
        match self.pair(to, from) {
            Some(pair) => amount.checked_div(pair.live_price(now)?),
            None => amount.checked_mul(self.fiat_rate(from, to, now)?),
        }
    }

    /// Units of the fiat currency `to` for one of `from`: the median of the rates by each crypto
    /// currency that has a fresh price in both, so that a single wrong price moves it little.
    fn fiat_rate(
        &self,
        from: CurrencyCode,
        to: CurrencyCode,
        now: DateTime<Utc>,
    ) -> Option<Decimal> {
        let in_from = self.pairs.values().filter(|pair| pair.quote.code() == from);
        let rates = in_from.filter_map(|pair| {
            let price = self.pair(pair.base.code(), to)?.live_price(now)?;
            price.checked_div(pair.live_price(now)?)
        });
        let mut rates: Vec<_> = rates.collect();
        rates.sort_unstable();
        rates.get(rates.len() / 2).copied()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::{Crypto, Currency, Pair, PairSide, PairStatus, Price};
    use super::*;
    use rampart_types::{Chain, CurrencyDetails, PairCode, Preserialized};

    fn code(text: &str) -> CurrencyCode {
        text.parse().unwrap()
    }

    fn currency(text: &str) -> Arc<Currency> {
        let details = CurrencyDetails {
            code: code(text),
            ticker: text.into(),
            name: text.into(),
            caip19: "swift:0/iso4217:EUR".parse().unwrap(),
        };
        let crypto = (text.len() != 3 || ["BTC", "ETH", "LTC"].contains(&text)).then(|| Crypto {
            chain: Chain::ALL[0],
            chain_name: None,
            supports_tag: false,
            address_explorer: None,
            transaction_explorer: None,
        });
        let details = Arc::new(Preserialized::new(details).unwrap());
        Arc::new(Currency { details, decimals: 2, crypto })
    }

    fn catalogue(prices: &[(&str, &str, &str)]) -> Catalogue {
        let mut catalogue = Catalogue::default();
        let side = || PairSide {
            status: PairStatus::Enabled,
            min: Decimal::ONE,
            max: Decimal::ONE_THOUSAND,
        };
        for (base, quote, price) in prices {
            let code = PairCode::new(code(base), code(quote));
            let price = Price {
                amount: price.parse().unwrap(),
                fixed: false,
                observed_at: DateTime::UNIX_EPOCH,
                max_age_seconds: Some(60),
                deviating: None,
            };
            let pair = Pair {
                code,
                base: currency(base),
                quote: currency(quote),
                buy: side(),
                sell: side(),
                spread_percentage: Decimal::ZERO,
                network_fee: Decimal::ZERO,
                provider_fee_percentage: Decimal::ZERO,
                quote_lifetime_seconds: None,
                price: Some(price),
                quotes_valid_from: None,
            };
            catalogue.pairs.insert(code, Arc::new(pair));
        }
        catalogue
    }

    fn converted(catalogue: &Catalogue, amount: u32, from: &str, to: &str) -> Option<String> {
        let now = DateTime::UNIX_EPOCH;
        let converted = catalogue.convert(amount.into(), code(from), code(to), now)?;
        Some(converted.normalize().to_string())
    }

    #[test]
    fn an_amount_is_converted_by_the_pairs_price_or_the_median_of_the_cross_rates() {
        let catalogue = catalogue(&[
            ("BTC", "EUR", "90000"),
            ("BTC", "USD", "100000"),
            ("ETH", "EUR", "4500"),
            ("ETH", "USD", "5000"),
            ("LTC", "EUR", "1"),
            ("LTC", "USD", "100"),
            ("BTC", "GBP", "80000"),
        ]);
        let all = [
            ("EUR", "EUR", Some("2")),
            ("BTC", "EUR", Some("180000")),
            ("EUR", "BTC", Some("0.0000222222222222222222222222")),
            ("USD", "EUR", Some("1.8")),
            ("GBP", "EUR", Some("2.25")),
            ("CHF", "EUR", None),
        ];
        for (from, to, expected) in all {
            let converted = converted(&catalogue, 2, from, to);
            assert_eq!(converted.as_deref(), expected, "{from} to {to}");
        }
    }

    #[test]
    fn a_price_that_its_sources_contradict_is_not_quoted() {
        let price = |deviating| Price {
            amount: Decimal::from(100),
            fixed: false,
            observed_at: DateTime::UNIX_EPOCH,
            max_age_seconds: Some(60),
            deviating,
        };
        let (open, closed) = (price(None), price(Some(Decimal::from(80))));
        let now = DateTime::UNIX_EPOCH;
        assert!(open.is_open(now) && !closed.is_open(now) && closed.is_fresh(now));
        assert_eq!(open.deviation(), Some(Decimal::ZERO));
        assert_eq!(closed.deviation(), Some(Decimal::new(2, 1)));
    }

    #[test]
    fn a_stale_price_gives_no_rate() {
        let catalogue = catalogue(&[("BTC", "EUR", "90000"), ("BTC", "USD", "100000")]);
        let later = DateTime::UNIX_EPOCH + chrono::TimeDelta::seconds(60);
        for from in ["USD", "BTC"] {
            assert_eq!(catalogue.convert(Decimal::ONE, code(from), code("EUR"), later), None);
        }
    }
}
