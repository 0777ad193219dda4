//! Policies that state fees.

use std::marker::PhantomData;

use crate::bindings::about::exports::rampart::policy::meta;
use crate::bindings::fee::exports::rampart::policy::fee::Guest;
pub use crate::bindings::fee::exports::rampart::policy::fee::{
    BoundedRate, Charge, FeeKind, FeeLine, FeeRequest, FeeSchedule, Stage,
};
pub use crate::{
    About, CallContext, Config, Money, PolicyError, Problem, Setting, SettingType, Side,
};
use crate::{ConfigEntry, about};

/// States the fees of a quote or an order; the host does the sums.
pub trait FeePolicy {
    /// Its description, shown to the operator.
    const ABOUT: About;

    /// Checks settings beyond their type. Called when they change, never for a request.
    ///
    /// # Errors
    /// The first setting that cannot be used.
    fn validate(_config: &Config) -> Result<(), Problem> {
        Ok(())
    }

    /// The fees of one quote or order.
    ///
    /// # Errors
    /// When the policy has no output; the host then applies the failure policy configured for the partner.
    fn price(
        context: CallContext,
        config: Config,
        request: FeeRequest,
    ) -> Result<FeeSchedule, PolicyError>;
}

/// A line of the partner's own fee.
pub fn partner_fee(code: &str, charge: Charge) -> FeeLine {
    FeeLine { kind: FeeKind::Partner, code: code.into(), charge }
}

/// A line for the cost of the payment method.
pub fn payment_method_fee(code: &str, charge: Charge) -> FeeLine {
    FeeLine { kind: FeeKind::PaymentMethod, code: code.into(), charge }
}

/// Exports a [`FeePolicy`] as the component.
#[macro_export]
macro_rules! fee_policy {
    ($policy:ty) => {
        type Exported = $crate::fee::Exported<$policy>;
        $crate::bindings::about::export!(Exported with_types_in $crate::bindings::about);
        $crate::bindings::fee::export!(Exported with_types_in $crate::bindings::fee);
    };
}

#[doc(hidden)]
pub struct Exported<P>(PhantomData<P>);

impl<P: FeePolicy> meta::Guest for Exported<P> {
    fn describe() -> meta::PolicyInfo {
        about::describe(&P::ABOUT, meta::PolicyKind::Fee)
    }

    fn validate_config(config: Vec<ConfigEntry>) -> Result<(), Vec<meta::ConfigProblem>> {
        P::validate(&Config::new(config)).map_err(about::problems)
    }
}

impl<P: FeePolicy> Guest for Exported<P> {
    fn price(
        context: CallContext,
        config: Vec<ConfigEntry>,
        request: FeeRequest,
    ) -> Result<FeeSchedule, PolicyError> {
        P::price(context, Config::new(config), request)
    }
}
