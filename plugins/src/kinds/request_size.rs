//! Size of a request. The engine meters the output of a policy, not its input; texts are the only
//! unbounded part of that, so they are counted.

use crate::bindings::types::{CallContext, ConfigEntry, ConfigValue, Money};

/// Rough cost of a list element beside its texts, in bytes.
pub(crate) const ELEMENT_BYTES: usize = 32;

/// A value handed to a policy.
pub(crate) trait RequestSize {
    /// Its size in the policy's memory, in bytes; an estimate from below within a small constant.
    fn size_bytes(&self) -> usize;
}

impl<T: RequestSize> RequestSize for [T] {
    fn size_bytes(&self) -> usize {
        self.iter().map(|item| ELEMENT_BYTES + item.size_bytes()).sum()
    }
}

impl<T: RequestSize> RequestSize for Option<T> {
    fn size_bytes(&self) -> usize {
        self.as_ref().map_or(0, RequestSize::size_bytes)
    }
}

impl RequestSize for String {
    fn size_bytes(&self) -> usize {
        self.len()
    }
}

impl RequestSize for Money {
    fn size_bytes(&self) -> usize {
        self.amount.len() + self.currency.len()
    }
}

impl RequestSize for ConfigEntry {
    fn size_bytes(&self) -> usize {
        let value = match &self.value {
            ConfigValue::Text(text) | ConfigValue::Decimal(text) => text.len(),
            ConfigValue::Texts(texts) => texts.size_bytes(),
            ConfigValue::Flag(_) | ConfigValue::Integer(_) => 0,
        };
        self.key.len() + value
    }
}

impl RequestSize for CallContext {
    fn size_bytes(&self) -> usize {
        let attributes = self.attributes.iter().map(|(k, v)| ELEMENT_BYTES + k.len() + v.len());
        self.partner.len() + self.request_id.len() + attributes.sum::<usize>()
    }
}
