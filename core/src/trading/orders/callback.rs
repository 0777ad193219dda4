//! The call to a partner's `callbackUrl` once an order is final (section 8 of the contract).

use url::Url;

use super::state::{Cause, OrderStatus};
use rampart_types::OrderId;

/// Outcome of a final order: the callback's `status` parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Success,
    Expired,
    Cancelled,
    Denied,
    Failed,
}

impl Outcome {
    /// The outcome of an order with this status and cause; `None` until it is final.
    pub(crate) const fn from_state(status: OrderStatus, cause: Cause) -> Option<Self> {
        match (status, cause) {
            (OrderStatus::Completed, _) => Some(Self::Success),
            (OrderStatus::Refunded, _) => Some(Self::Failed),
            (OrderStatus::Cancelled, Cause::Expired) => Some(Self::Expired),
            (OrderStatus::Cancelled, Cause::PaymentDenied) => Some(Self::Denied),
            (OrderStatus::Cancelled, _) => Some(Self::Cancelled),
            (OrderStatus::Pending | OrderStatus::InProgress | OrderStatus::Blocked, _) => None,
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
            Self::Denied => "denied",
            Self::Failed => "failed",
        }
    }
}

/// The URL to call: `orderId` and `status` are appended to its query.
pub(crate) fn address(callback_url: &str, order: OrderId, outcome: Outcome) -> String {
    match Url::parse(callback_url) {
        Ok(mut url) => {
            url.query_pairs_mut()
                .append_pair("orderId", &order.to_string())
                .append_pair("status", outcome.as_str());
            url.into()
        }
        // Unreachable for a URL that a confirm has validated; otherwise the delivery fails visibly.
        Err(_) => callback_url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_added_to_the_ones_it_has() {
        let order = OrderId::new(7).unwrap();
        for (url, expected) in [
            ("https://shop.example/cb", "https://shop.example/cb?orderId=7&status=expired"),
            ("https://shop.example/cb?a=b", "https://shop.example/cb?a=b&orderId=7&status=expired"),
            ("https://shop.example/cb#x", "https://shop.example/cb?orderId=7&status=expired#x"),
        ] {
            assert_eq!(address(url, order, Outcome::Expired), expected);
        }
    }

    #[test]
    fn an_order_has_an_outcome_exactly_when_it_is_final() {
        for status in OrderStatus::ALL {
            for cause in Cause::ALL {
                assert_eq!(Outcome::from_state(status, cause).is_some(), status.is_final());
            }
        }
        assert_eq!(
            Outcome::from_state(OrderStatus::Cancelled, Cause::Expired).unwrap().as_str(),
            "expired"
        );
    }
}
