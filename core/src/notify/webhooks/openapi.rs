//! Requests to partners, as the document's `webhooks`.

use serde_json::{Value, json};

use crate::notify::events::EventType;

const DETAILS: &str = "\
Every registered endpoint is told of the events that it listens to. The `callbackUrl` of an order is \
told once, when the order is final; `orderId` and `status` (`success`, `expired`, `cancelled`, \
`denied`, `failed`) are then added to its query.\n\n\
Answer 2xx within 15 seconds. Anything else, redirects too, is sent again after 5 s, 5 min, 30 min, \
2 h, 5 h, 10 h, 14 h, 20 h and 24 h; 410 disables the endpoint, and so do \
three days without a 2xx. Events of one order come in their order, unless one is sent again. An event \
may come twice: `webhook-id` is the same then.\n\n\
Requests are signed as Standard Webhooks says: `webhook-signature` is `v1,` and the base64 of \
HMAC-SHA256 over `webhook-id`, `webhook-timestamp` and the body, joined by dots. The key is what \
stands behind `whsec_` in the webhook secret, decoded from base64. While a secret is being replaced \
each one signs, with a blank between the signatures. An endpoint that was given a secret of its own in the \
partners' portal is signed with that one instead; `webhook.test` is sent from there, to one endpoint. \
Refuse a request whose signature does not fit, \
or whose time is long ago.";

/// The one webhook: an event.
pub fn openapi() -> Value {
    let header = |name, about| {
        json!({
            "name": name, "in": "header", "required": true, "description": about,
            "schema": { "type": "string" },
        })
    };
    json!({ "event": { "post": {
        "operationId": "receiveEvent",
        "tags": ["Webhooks"],
        "summary": "Receive an event",
        "description": DETAILS,
        "security": [],
        "parameters": [
            header("webhook-id", "The event's id, the same for every attempt."),
            header("webhook-timestamp", "When this attempt was made, in seconds since 1970."),
            header("webhook-signature", "`v1,` and the base64 of the signature."),
        ],
        "requestBody": { "required": true, "content": { "application/json": {
            "schema": {
                "type": "object",
                "description": "An event.",
                "properties": {
                    "type": {
                        "type": "string", "enum": EventType::NAMES,
                        "description": "Type of the event.",
                    },
                    "timestamp": {
                        "type": "string", "format": "date-time",
                        "description": "When it happened.",
                    },
                    "data": {
                        "type": "object",
                        "description": "The subject of the event. For an order `orderId`, \
                                        `partnerOrderIdentifier` and `status`, and the amounts of \
                                        what happened: `payment` (`id`, `amount`, `currencyCode`) \
                                        of `order.payment_received` and `order.disputed`, `due` \
                                        and the list `received` of `order.blocked`, with a \
                                        `reason` if the price has moved, and the list `refunded` \
                                        of `order.refunded`; `order.repriced` has `fiatAmount`, \
                                        `cryptoAmount`, `price`, and each with `previous` before \
                                        it. For a user `uuid`. For a webhook endpoint \
                                        `endpointId`; `webhook.disabled` has `url`, \
                                        `failingSince` and `disabledAt` besides.",
                    },
                },
                "required": ["type", "timestamp", "data"],
            },
            "example": {
                "type": "order.completed",
                "timestamp": "2026-03-01T12:00:07Z",
                "data": {
                    "orderId": 1_234_567_890_123_456_u64,
                    "partnerOrderIdentifier": "shop-7",
                    "status": "completed",
                },
            },
        } } },
        "responses": { "2XX": { "description": "Received: it is not sent again." } },
    } } })
}
