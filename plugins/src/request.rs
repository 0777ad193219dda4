//! How much a request hands to a policy. The engine meters what comes out of a policy, not what goes
//! in; texts are the only unbounded part, so they are what is weighed.

use crate::bindings::fee::FeeRequest;
use crate::bindings::method_order::OrderRequest;
use crate::bindings::signature::SignedPayload;
use crate::bindings::types::{CallContext, ConfigEntry, ConfigValue, Money};

/// Most methods in one request (`wit/method-order.wit`).
pub(crate) const METHODS_MAX: usize = 64;

/// Roughly what a list element costs beside its texts, in bytes.
const ELEMENT_BYTES: usize = 32;

/// A value handed to a policy.
pub(crate) trait Weigh {
    /// Its size there, in bytes; an estimate from below within a small constant.
    fn weight(&self) -> usize;
}

impl<T: Weigh> Weigh for [T] {
    fn weight(&self) -> usize {
        self.iter().map(|item| ELEMENT_BYTES + item.weight()).sum()
    }
}

impl<T: Weigh> Weigh for Option<T> {
    fn weight(&self) -> usize {
        self.as_ref().map_or(0, Weigh::weight)
    }
}

impl Weigh for String {
    fn weight(&self) -> usize {
        self.len()
    }
}

impl Weigh for Money {
    fn weight(&self) -> usize {
        self.amount.len() + self.currency.len()
    }
}

impl Weigh for ConfigEntry {
    fn weight(&self) -> usize {
        let value = match &self.value {
            ConfigValue::Text(text) | ConfigValue::Decimal(text) => text.len(),
            ConfigValue::Texts(texts) => texts.weight(),
            ConfigValue::Flag(_) | ConfigValue::Integer(_) => 0,
        };
        self.key.len() + value
    }
}

impl Weigh for CallContext {
    fn weight(&self) -> usize {
        let attributes = self.attributes.iter().map(|(k, v)| ELEMENT_BYTES + k.len() + v.len());
        self.partner.len() + self.request_id.len() + attributes.sum::<usize>()
    }
}

impl Weigh for FeeRequest {
    fn weight(&self) -> usize {
        let texts = [
            &self.receive_currency,
            &self.mid_rate,
            &self.payment_method,
            &self.country,
            &self.user_tier,
        ];
        texts.into_iter().map(Weigh::weight).sum::<usize>()
            + self.pay.weight()
            + self.volume_30d.weight()
            + self.promo_code.weight()
    }
}

impl Weigh for OrderRequest {
    fn weight(&self) -> usize {
        let methods =
            self.methods.iter().map(|m| ELEMENT_BYTES + m.id.len() + m.currencies.weight());
        let user = &self.user;
        self.amount.weight()
            + user.country.len()
            + user.tier.len()
            + user.last_used.weight()
            + user.channel.len()
            + methods.sum::<usize>()
    }
}

impl Weigh for SignedPayload {
    fn weight(&self) -> usize {
        let fields = self.fields.iter().map(|f| ELEMENT_BYTES + f.name.len() + f.value.len());
        let headers = self.headers.iter().map(|h| ELEMENT_BYTES + h.name.len() + h.value.len());
        fields.sum::<usize>()
            + headers.sum::<usize>()
            + self.claimed.weight()
            + self.method.len()
            + self.path.len()
            + self.query.len()
            + self.body.len()
    }
}
