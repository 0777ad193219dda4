//! The fee rules of a quote: those of the partner's policy, or the built-in ones.

use rampart_plugins::contract::{self, FeeRequest, Money, PolicyKind};
use rust_decimal::Decimal;
use serde_json::{Value, json};

use super::Side;
use super::policy_user::PolicyUser;
use super::request::Request;
use crate::Core;
use crate::auth::caller::ClientMaybeUser;
use crate::platform::error::Result;
use crate::policies::kinds::fee::{PolicyFees, fee_schedule};
use crate::policies::{self, Attributes};
use crate::trading::pricing::{
    BoundedFee, Bounds, Given, PAYMENT_METHOD_PERCENT_MAX, Priced, Rules, SPREAD_PERCENT_MAX,
    SPREAD_PERCENT_MIN, Unpriceable,
};
use rampart_types::decimal::divide_down;
use rampart_types::money::fiat_value;

/// Decimals of computed amounts and rates in a policy's input.
const POLICY_DECIMALS: u32 = 18;

/// The rules of one quote, and the policy that they are from.
pub(super) struct Fees {
    pub(super) rules: Rules,
    pub(super) bounds: Bounds,
    policy: Option<PolicyFees>,
}

impl Fees {
    /// Evaluates the partner's policy, or takes the built-in rules if there is none or it fails:
    /// the requested percentage or the tenant's default, the method's fees, the pair's spread. A
    /// policy replaces all of these, the request's `fee` included; only the method's fees stay if
    /// its schedule has no line for them. `facts` are the user's.
    ///
    /// # Errors
    /// ER328 when a policy fails that is set to fail closed; ER011 or ER012 for an amount whose
    /// sums do not fit.
    pub(super) async fn evaluate(
        core: &Core,
        caller: &ClientMaybeUser,
        request: &Request,
        price: Decimal,
        facts: Option<&PolicyUser>,
    ) -> Result<Self> {
        let tenant = &caller.client.tenant;
        let bounds = Bounds {
            partner_percentage_max: tenant.fee_cap_percentage,
            payment_method_fixed: request.method.fee_fixed,
        };
        let policy = match tenant.policies.has(PolicyKind::Fee) {
            true => {
                let (client, user) = (&caller.client, caller.user);
                let volume = facts.and_then(|user| {
                    let (pays, _) = request.paid_and_received();
                    user.volume_in(pays, &client.catalogue, core.clock.now())
                });
                let input = policy_input(request, price, facts, volume)
                    .ok_or_else(|| request.unpriceable(Unpriceable::TooLarge))?;
                Box::pin(fee_schedule(core, client, user, input, &attributes(request))).await?
            }
            false => None,
        };
        let unit = if request.side == Side::Buy { Decimal::ONE } else { price };
        let from_policy = match policy {
            Some(policy) => {
                let rules = Rules::from_schedule(&policy.schedule, &request.method, unit)
                    .ok_or_else(|| request.unpriceable(Unpriceable::TooLarge))?;
                Some((rules, policy))
            }
            None => None,
        };
        Ok(match from_policy {
            Some((rules, policy)) => Self { rules, bounds, policy: Some(policy) },
            None => {
                let partner = request.fee.unwrap_or(tenant.default_fee_percentage);
                let spread = request.pair.spread_percentage;
                let rules = Rules::built_in(partner, &request.method, spread);
                Self { rules, bounds, policy: None }
            }
        })
    }

    /// The entries of these fees in the order's audit row.
    pub(super) fn decisions(self, core: &Core, caller: &ClientMaybeUser, priced: &Priced) -> Value {
        let within = self.describe_bounds(&priced.clamped);
        let clamped: Vec<_> = priced.clamped.iter().map(|fee| fee.as_str()).collect();
        match self.policy {
            Some(mut policy) => {
                if !clamped.is_empty() {
                    policy.note_clamped(core, &caller.client, json!(clamped), within);
                }
                Value::Array(vec![policy.decision])
            }
            None if clamped.is_empty() => Value::Array(Vec::new()),
            None => json!([{
                "kind": "fee", "policy": "built-in", "clamped": clamped, "within": within,
            }]),
        }
    }

    /// The bounds that clamped these fees, in words.
    fn describe_bounds(&self, clamped: &[BoundedFee]) -> Value {
        let bound = |fee| match fee {
            BoundedFee::Partner => {
                let cap = self.bounds.partner_percentage_max.normalize();
                format!("0 to {cap} % of the amount, the partner's cap")
            }
            BoundedFee::PaymentMethod => {
                let fixed = self.bounds.payment_method_fixed.normalize();
                format!("0 to {fixed} and {PAYMENT_METHOD_PERCENT_MAX} % of the amount")
            }
            BoundedFee::Spread => {
                format!("{SPREAD_PERCENT_MIN} to {SPREAD_PERCENT_MAX} % of what is converted")
            }
        };
        let bounds = clamped.iter().map(|fee| (fee.as_str().to_owned(), bound(*fee).into()));
        Value::Object(bounds.collect())
    }
}

/// The attributes of the call: what the request says that the contract has no member for.
fn attributes(request: &Request) -> Attributes {
    let channel = request.channel.map(|channel| ("channel", channel.to_owned()));
    let fee = request.fee.map(|fee| ("requested-fee-percentage", plain(fee)));
    let known = [channel, fee].into_iter().flatten();
    known.map(|(key, value)| (key.to_owned(), value)).collect()
}

/// The policy's input, for a user with this volume. If the request gives the other amount, the
/// amount that the user pays is converted at the mid price, because the exact one depends on the
/// policy's output.
fn policy_input(
    request: &Request,
    price: Decimal,
    user: Option<&PolicyUser>,
    volume: Option<Decimal>,
) -> Option<FeeRequest> {
    let (side, pair) = (request.side, &request.pair);
    let exponent = pair.quote.scale();
    let (pays, receives) = request.paid_and_received();
    let country = request.country.map(|country| country.as_str().to_owned());
    let (user_country, tier) = user.map(|user| (user.country.clone(), user.tier.clone())).unzip();
    let pay = match (side, request.given) {
        (Side::Buy, Given::Fiat(fiat)) => fiat,
        (Side::Buy, Given::Crypto(crypto)) => fiat_value(crypto, price, exponent)?,
        (Side::Sell, Given::Crypto(crypto)) => crypto,
        (Side::Sell, Given::Fiat(fiat)) => divide_down(fiat, price, pair.base.scale())?,
    };
    Some(FeeRequest {
        stage: request.stage,
        side: match side {
            Side::Buy => contract::Side::Buy,
            Side::Sell => contract::Side::Sell,
        },
        pay: Money { amount: plain(pay), currency: pays.code().to_string() },
        receive_currency: receives.code().to_string(),
        mid_rate: plain(mid_rate(side, price)?),
        payment_method: request.method.code.clone(),
        country: country
            .or(user_country.flatten())
            .unwrap_or_else(|| policies::COUNTRY_UNKNOWN.to_owned()),
        user_tier: tier.unwrap_or_else(|| policies::GUEST_TIER.to_owned()),
        volume_30d: volume.map(plain),
        promo_code: request.promo_code.clone(),
    })
}

/// Units that the user receives for one that it pays, at the mid price.
fn mid_rate(side: Side, price: Decimal) -> Option<Decimal> {
    match side {
        // Not by integers: with the decimals of a small price they would not fit.
        Side::Buy => Some(Decimal::ONE.checked_div(price)?.trunc_with_scale(POLICY_DECIMALS)),
        Side::Sell => Some(price),
    }
}

fn plain(value: Decimal) -> String {
    value.normalize().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_of_many_decimals_has_a_mid_rate() {
        let rate = |side, price: &str| mid_rate(side, price.parse().unwrap()).map(plain);
        assert_eq!(rate(Side::Buy, "90000").as_deref(), Some("0.000011111111111111"));
        let small = "0.0000123456789012345678";
        assert_eq!(rate(Side::Buy, small).as_deref(), Some("81000.0007290000072252"));
        assert_eq!(rate(Side::Sell, small).as_deref(), Some(small));
    }
}
