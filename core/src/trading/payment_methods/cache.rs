//! Data about payment methods that depends on the catalogue alone, computed once per catalogue.

use std::sync::OnceLock;

use rampart_plugins::contract::Method;

use super::country_cache::CountryCache;
use super::response_cache::ResponseCache;
use crate::policies::kinds::method_order::policy_methods;
use crate::trading::catalogue::{OfCatalogue, PerCatalogue};

/// The cache of the current catalogue.
pub type MethodCache = PerCatalogue<CatalogueMethods>;

/// The data that requests with one catalogue share.
#[derive(Debug, Default)]
pub struct CatalogueMethods {
    pub(super) countries: CountryCache,
    pub(super) responses: ResponseCache,
    policy_methods: OnceLock<Vec<Method>>,
}

impl OfCatalogue<CatalogueMethods> {
    /// All methods as policy input, in the catalogue's order.
    pub(super) fn policy_methods(&self) -> &[Method] {
        self.policy_methods.get_or_init(|| policy_methods(&self.catalogue))
    }
}
