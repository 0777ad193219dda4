//! A partner fee that falls with the amount, with a floor, and promotion codes for discounts.
//!
//! - `tiers`: `FROM=PPM`, ascending; the last tier the amount reaches applies
//! - `promotions`: `CODE=PPM`, the discount of a code on the rate
//! - `minimum`: the least the fee can be without a code, in the pay currency
//! - `sell-rate`: the rate of a sale, where the pay amount is crypto and tiers make no sense

use rampart_guest::decimal::Decimal;
use rampart_guest::fee::*;

struct TieredFee;

rampart_guest::fee_policy!(TieredFee);

const DEFAULT_TIERS: [(&str, i32); 3] = [("0", 15_000), ("500", 10_000), ("5000", 5_000)];
const DEFAULT_SELL_RATE: i32 = 10_000;

impl FeePolicy for TieredFee {
    const ABOUT: About = About {
        name: "rampart/tiered-fee",
        version: "1.0.0",
        summary: "A partner fee by amount, with a floor and promotion codes.",
        settings: &[
            Setting::optional("minimum", SettingType::Decimal, "least fee, in the pay currency"),
            Setting::optional("promotions", SettingType::Texts, "CODE=PPM taken off the rate"),
            Setting::optional("sell-rate", SettingType::Integer, "rate of a sale, in ppm"),
            Setting::optional("tiers", SettingType::Texts, "FROM=PPM, ascending from 0"),
        ],
        keys: &[],
    };

    fn validate(config: &Config) -> Result<(), Problem> {
        let tiers = tiers(config)?;
        let amounts: Vec<_> = tiers.iter().map(|(from, _)| *from).collect();
        if amounts.first() != Decimal::parse("0").as_ref() || !amounts.is_sorted_by(|a, b| a < b) {
            return Err(Problem::new("tiers", "must begin at 0 and ascend"));
        }
        for promotion in config.texts("promotions") {
            pair("promotions", promotion)?;
        }
        Ok(())
    }

    fn price(
        _: CallContext,
        config: Config,
        request: FeeRequest,
    ) -> Result<FeeSchedule, PolicyError> {
        let (rate, tier) = match request.side {
            Side::Sell => (config.integer("sell-rate").unwrap_or(DEFAULT_SELL_RATE), "sale".into()),
            Side::Buy => tier(&config, &request.pay)?,
        };
        let discount = discount(&config, request.promo_code.as_deref())?;
        let charge = match (discount, request.side) {
            (None, Side::Buy) => Charge::Bounded(BoundedRate {
                rate,
                at_least: config.decimal("minimum").map(Into::into),
                at_most: None,
            }),
            (off, _) => Charge::Rate((rate - off.unwrap_or(0)).max(0)),
        };
        let rule = if discount.is_some() { tier + "-promotion" } else { tier };
        Ok(FeeSchedule { lines: vec![partner_fee("tiered", charge)], spread: 0, rule })
    }
}

/// The rate of the last tier that `pay` reaches, and the name of that tier.
fn tier(config: &Config, pay: &Money) -> Result<(i32, String), PolicyError> {
    let amount = Decimal::parse(&pay.amount)
        .ok_or_else(|| PolicyError::InvalidInput("the pay amount is not a decimal".into()))?;
    let tiers = tiers(config)?;
    let index = tiers
        .iter()
        .rposition(|(from, _)| *from <= amount)
        .ok_or_else(|| PolicyError::InvalidInput("no tier covers this amount".into()))?;
    Ok((tiers[index].1, ["tier-", &(index + 1).to_string()].concat()))
}

fn tiers(config: &Config) -> Result<Vec<(Decimal<'_>, i32)>, Problem> {
    let amount = |from| {
        Decimal::parse(from).ok_or_else(|| Problem::new("tiers", format!("`{from}` is no amount")))
    };
    match config.texts("tiers") {
        [] => DEFAULT_TIERS.iter().map(|(from, rate)| Ok((amount(from)?, *rate))).collect(),
        texts => texts
            .iter()
            .map(|text| pair("tiers", text).and_then(|(from, rate)| Ok((amount(from)?, rate))))
            .collect(),
    }
}

/// The discount of a code; `None` without a code, or for an unknown one.
fn discount(config: &Config, code: Option<&str>) -> Result<Option<i32>, Problem> {
    let Some(code) = code else { return Ok(None) };
    for promotion in config.texts("promotions") {
        let (name, off) = pair("promotions", promotion)?;
        if name == code {
            return Ok(Some(off));
        }
    }
    Ok(None)
}

/// `NAME=PPM`, with a rate from 0 to 100 %.
fn pair<'a>(key: &'static str, text: &'a str) -> Result<(&'a str, i32), Problem> {
    text.split_once('=')
        .and_then(|(name, ppm)| Some((name, ppm.parse().ok()?)))
        .filter(|(_, ppm)| (0..=1_000_000).contains(ppm))
        .ok_or_else(|| Problem::new(key, format!("`{text}` is not NAME=PPM")))
}
