//! Data about payment methods that depends on the catalogue alone, computed once per catalogue.

use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwapOption;
use rampart_plugins::contract::Method;

use super::country_cache::CountryCache;
use super::response_cache::ResponseCache;
use crate::policies::kinds::method_order::policy_methods;
use crate::trading::catalogue::Catalogue;

/// The cache of the current catalogue. One per edge.
#[derive(Debug, Default)]
pub struct MethodCache(ArcSwapOption<CatalogueMethods>);

/// The data that requests with one catalogue share.
#[derive(Debug)]
pub(super) struct CatalogueMethods {
    pub(super) catalogue: Arc<Catalogue>,
    pub(super) countries: CountryCache,
    pub(super) responses: ResponseCache,
    policy_methods: OnceLock<Vec<Method>>,
}

impl MethodCache {
    /// The cache of `catalogue`. The first request with another catalogue starts a new one.
    pub(super) fn for_catalogue(&self, catalogue: &Arc<Catalogue>) -> Arc<CatalogueMethods> {
        let current = self.0.load();
        match &*current {
            Some(methods) if Arc::ptr_eq(&methods.catalogue, catalogue) => Arc::clone(methods),
            _ => {
                let methods = Arc::new(CatalogueMethods::new(Arc::clone(catalogue)));
                self.0.store(Some(Arc::clone(&methods)));
                methods
            }
        }
    }
}

impl CatalogueMethods {
    fn new(catalogue: Arc<Catalogue>) -> Self {
        Self {
            catalogue,
            countries: CountryCache::default(),
            responses: ResponseCache::default(),
            policy_methods: OnceLock::new(),
        }
    }

    /// All methods as policy input, in the catalogue's order.
    pub(super) fn policy_methods(&self) -> &[Method] {
        self.policy_methods.get_or_init(|| policy_methods(&self.catalogue))
    }
}
