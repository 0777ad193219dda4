//! Values that are computed from the current catalogue.

use std::ops::Deref;
use std::sync::Arc;

use arc_swap::ArcSwapOption;

use super::Catalogue;

/// A value that belongs to the current catalogue; another catalogue begins with another one. One per
/// edge.
#[derive(Debug)]
pub struct PerCatalogue<T>(ArcSwapOption<OfCatalogue<T>>);

/// A value that all requests with one catalogue share.
#[derive(Debug)]
pub struct OfCatalogue<T> {
    /// The catalogue.
    pub catalogue: Arc<Catalogue>,
    value: T,
}

impl<T> Default for PerCatalogue<T> {
    fn default() -> Self {
        Self(ArcSwapOption::empty())
    }
}

impl<T: Default> PerCatalogue<T> {
    /// The value of `catalogue`. The first request with another catalogue replaces it.
    pub fn of(&self, catalogue: &Arc<Catalogue>) -> Arc<OfCatalogue<T>> {
        let current = self.0.load();
        match &*current {
            Some(current) if Arc::ptr_eq(&current.catalogue, catalogue) => Arc::clone(current),
            _ => {
                let new = OfCatalogue { catalogue: Arc::clone(catalogue), value: T::default() };
                let new = Arc::new(new);
                self.0.store(Some(Arc::clone(&new)));
                new
            }
        }
    }
}

impl<T> Deref for OfCatalogue<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}
