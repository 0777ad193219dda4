//! Policies that order payment methods.

use std::marker::PhantomData;

use crate::bindings::about::exports::rampart::policy::meta;
use crate::bindings::method_order::exports::rampart::policy::method_order::Guest;
pub use crate::bindings::method_order::exports::rampart::policy::method_order::{
    Method, MethodKind, OrderRequest, Placement, Ranking, UserFacts,
};
pub use crate::{
    About, CallContext, Config, Money, PolicyError, Problem, Setting, SettingType, Side,
};
use crate::{ConfigEntry, about};

/// Orders the payment methods offered to one user.
pub trait MethodOrderPolicy {
    /// Its description, shown to the operator.
    const ABOUT: About;

    /// Checks settings beyond their type. Called when they change, never for a request.
    ///
    /// # Errors
    /// The first setting that cannot be used.
    fn validate(_config: &Config) -> Result<(), Problem> {
        Ok(())
    }

    /// The order for one user; a method in neither list follows in the host's order.
    ///
    /// # Errors
    /// When the policy has no output; the host then uses its own order.
    fn rank(
        context: CallContext,
        config: Config,
        request: OrderRequest,
    ) -> Result<Ranking, PolicyError>;
}

/// Exports a [`MethodOrderPolicy`] as the component.
#[macro_export]
macro_rules! method_order_policy {
    ($policy:ty) => {
        type Exported = $crate::method_order::Exported<$policy>;
        $crate::bindings::about::export!(Exported with_types_in $crate::bindings::about);
        $crate::bindings::method_order::export!(Exported with_types_in $crate::bindings::method_order);
    };
}

#[doc(hidden)]
pub struct Exported<P>(PhantomData<P>);

impl<P: MethodOrderPolicy> meta::Guest for Exported<P> {
    fn describe() -> meta::PolicyInfo {
        about::describe(&P::ABOUT, meta::PolicyKind::MethodOrder)
    }

    fn validate_config(config: Vec<ConfigEntry>) -> Result<(), Vec<meta::ConfigProblem>> {
        P::validate(&Config::new(config)).map_err(about::problems)
    }
}

impl<P: MethodOrderPolicy> Guest for Exported<P> {
    fn rank(
        context: CallContext,
        config: Vec<ConfigEntry>,
        request: OrderRequest,
    ) -> Result<Ranking, PolicyError> {
        P::rank(context, Config::new(config), request)
    }
}
