//! Fee policies: states the fees of a quote or an order.

use rust_decimal::Decimal;

use super::compiled::{Compiled, Linked};
use super::probes::{ProbeFuel, burnt_fuel, largest_bytes};
use super::request_size::RequestSize;
use super::scalars::{check_rule, is_slug, parse_decimal};
use crate::bindings::fee::{self, FeeKind, FeeRequest, GuestIndices, Stage};
use crate::bindings::types::{CallContext, ConfigEntry, Money, Side};
use crate::host::call::{Call, CallClass, run, too_large};
use crate::host::keys::KeyRing;
use crate::host::rejection::Rejection;
use crate::host::report::CallReport;

/// Interfaces it may import.
pub(crate) const IMPORTS: &[&str] = &["types", "log"];

/// Most lines in a fee schedule.
const LINES_MAX: usize = 16;
const CODE_CHARS_MAX: usize = 32;

/// States the fees of a quote or an order. Cheap to clone, to be shared by threads.
#[derive(Clone)]
pub struct FeePolicy(pub(crate) Compiled<GuestIndices>);

impl FeePolicy {
    pub(crate) fn new(linked: Linked) -> wasmtime::Result<Self> {
        let exports = GuestIndices::new(&linked.instance)?;
        Ok(Self(Compiled { linked, exports }))
    }

    /// The fees of one quote or order, checked but neither clamped nor summed.
    pub fn price(
        &self,
        class: CallClass,
        context: &CallContext,
        config: &[ConfigEntry],
        request: &FeeRequest,
    ) -> CallReport<FeeSchedule> {
        let Compiled { linked: Linked { runtime, instance, .. }, exports } = &self.0;
        let size = context.size_bytes() + config.size_bytes() + request.size_bytes();
        if size > runtime.limits.request_bytes_max {
            return too_large(size);
        }
        let call = Call::new(runtime.limits, context.now, KeyRing::default());
        run(
            runtime,
            instance,
            class,
            call,
            |store, instance| {
                exports.load(&mut *store, instance)?.call_price(store, context, config, request)
            },
            |schedule, _| check_schedule(schedule),
        )
    }

    pub(crate) fn probe(
        &self,
        context: &CallContext,
        config: &[ConfigEntry],
    ) -> Result<ProbeFuel, Rejection> {
        burnt_fuel(
            &probe_requests(),
            |_| false,
            |request| self.price(CallClass::Admission, context, config, request),
        )
    }
}

/// The fees of a quote or an order as rules; the host does the sums.
#[derive(Clone, Debug, PartialEq)]
pub struct FeeSchedule {
    /// At most 16.
    pub lines: Vec<FeeLine>,
    /// Parts per million of the mid rate, against the user; negative is a subsidy. Not bounded here.
    pub spread_ppm: i32,
    /// The rule of the policy that fired, for the audit row; `[a-z0-9-]{0,64}`.
    pub rule: String,
}

/// One fee.
#[derive(Clone, Debug, PartialEq)]
pub struct FeeLine {
    /// The party the fee is for.
    pub kind: FeeKind,
    /// For reports; `[a-z0-9-]{1,32}`.
    pub code: String,
    /// The amount, or the rate to compute it from.
    pub charge: Charge,
}

/// Calculation of a fee. Amounts are in the pay currency, neither clamped nor rounded yet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Charge {
    /// An amount.
    Flat(Decimal),
    /// Parts per million of the pay amount, not bounded here, and bounds of the result.
    Rate {
        /// Parts per million.
        ppm: i32,
        /// The fee is never less, if set; not above `at_most`.
        at_least: Option<Decimal>,
        /// The fee is never more, if set.
        at_most: Option<Decimal>,
    },
}

fn check_schedule(schedule: fee::FeeSchedule) -> Result<FeeSchedule, String> {
    let fee::FeeSchedule { lines, spread, rule } = schedule;
    if lines.len() > LINES_MAX {
        return Err(format!("{} fee lines, at most {LINES_MAX} are allowed", lines.len()));
    }
    Ok(FeeSchedule {
        lines: lines.into_iter().map(check_line).collect::<Result<_, _>>()?,
        spread_ppm: spread,
        rule: check_rule(rule)?,
    })
}

fn check_line(line: fee::FeeLine) -> Result<FeeLine, String> {
    let fee::FeeLine { kind, code, charge } = line;
    if code.is_empty() || !is_slug(&code, CODE_CHARS_MAX) {
        return Err("a fee code is not [a-z0-9-]{1,32}".into());
    }
    let charge = match charge {
        fee::Charge::Flat(amount) => Charge::Flat(parse_decimal(&amount)?),
        fee::Charge::Rate(rate) => Charge::Rate { ppm: rate, at_least: None, at_most: None },
        fee::Charge::Bounded(fee::BoundedRate { rate, at_least, at_most }) => {
            let at_least = at_least.as_deref().map(parse_decimal).transpose()?;
            let at_most = at_most.as_deref().map(parse_decimal).transpose()?;
            if let (Some(least), Some(most)) = (at_least, at_most)
                && least > most
            {
                return Err(format!("at-least {least} is above at-most {most}"));
            }
            Charge::Rate { ppm: rate, at_least, at_most }
        }
    };
    Ok(FeeLine { kind, code, charge })
}

impl RequestSize for FeeRequest {
    fn size_bytes(&self) -> usize {
        let texts = [
            &self.receive_currency,
            &self.mid_rate,
            &self.payment_method,
            &self.country,
            &self.user_tier,
        ];
        texts.into_iter().map(RequestSize::size_bytes).sum::<usize>()
            + self.pay.size_bytes()
            + self.volume_30d.size_bytes()
            + self.promo_code.size_bytes()
    }
}

/// Size of the largest probe, in bytes.
pub(crate) fn largest_probe_bytes() -> usize {
    largest_bytes(&probe_requests())
}

fn probe_requests() -> Vec<FeeRequest> {
    let ordinary = FeeRequest {
        stage: Stage::Quote,
        side: Side::Buy,
        pay: Money { amount: "100.00".into(), currency: "EUR".into() },
        receive_currency: "BTC".into(),
        mid_rate: "0.0000108".into(),
        payment_method: "creditCard".into(),
        country: "DE".into(),
        user_tier: "basic".into(),
        volume_30d: None,
        promo_code: None,
    };
    let with_promo = FeeRequest {
        volume_30d: Some("2500.00".into()),
        promo_code: Some("WELCOME".into()),
        ..ordinary.clone()
    };
    let large = FeeRequest {
        stage: Stage::Order,
        pay: Money { amount: "999999999999.99".into(), currency: "EUR".into() },
        ..ordinary.clone()
    };
    let small = FeeRequest {
        pay: Money { amount: "0.01".into(), currency: "CHF".into() },
        country: "CH".into(),
        ..ordinary.clone()
    };
    let sale = FeeRequest {
        side: Side::Sell,
        pay: Money { amount: "0.00000001".into(), currency: "BTC".into() },
        receive_currency: "EUR".into(),
        mid_rate: "92592.59".into(),
        payment_method: "bankTransfer".into(),
        ..ordinary.clone()
    };
    let requests = [ordinary, with_promo, large, small, sale];
    requests.into()
}

#[cfg(test)]
mod tests;
