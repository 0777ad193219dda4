//! A partner fee of one rate, with countries that pay none.

use rampart_guest::fee::*;

struct FlatFee;

rampart_guest::fee_policy!(FlatFee);

/// 1.25 %, in parts per million.
const DEFAULT_RATE: i32 = 12_500;

impl FeePolicy for FlatFee {
    const ABOUT: About = About {
        name: "example/@name@",
        version: "1.0.0",
        summary: "A partner fee of one rate, with countries that pay none.",
        settings: &[
            Setting::optional(
                "free-countries",
                SettingType::Texts,
                "countries that pay nothing, as ISO codes",
            ),
            Setting::optional(
                "rate",
                SettingType::Integer,
                "the fee, in parts per million of the amount",
            ),
        ],
        keys: &[],
    };

    fn price(
        _: CallContext,
        config: Config,
        request: FeeRequest,
    ) -> Result<FeeSchedule, PolicyError> {
        let is_free = config.texts("free-countries").contains(&request.country);
        let (rate, rule) = match is_free {
            true => (0, "free-country"),
            false => (config.integer("rate").unwrap_or(DEFAULT_RATE), "everyone"),
        };
        let lines = vec![partner_fee("flat-rate", Charge::Rate(rate))];
        Ok(FeeSchedule { lines, spread: 0, rule: rule.into() })
    }
}
