//! Credentials in the document's terms: an alternative is a set of credentials that come together.

use serde_json::{Value, json};

use crate::auth::caller::UserProof;
use crate::endpoint::Route;

const CLIENT: [&str; 2] = ["ClientToken", "ApiKey"];
const USER: [&str; 2] = ["UserToken", "UserIdentifier"];

/// Every credential of the partners' API.
pub(super) fn schemes() -> Value {
    json!({
        "ClientToken": {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": "JWT",
            "description": "The `token` of `POST /api/v1/authenticate`, which lives an hour. Every \
                            operation that lists it in `x-credentials` takes it in place of an \
                            API key; exactly one of both per request.",
        },
        "ApiKey": {
            "type": "apiKey",
            "in": "header",
            "name": "X-Api-Key",
            "description": "A key issued by the operator. Exactly one client credential per request.",
        },
        "UserToken": {
            "type": "apiKey",
            "in": "header",
            "name": "User-Authorization",
            "description": "`Bearer ` and the `token` of a user's login, which lives an hour. It proves \
                            a user in place of an identifier.",
        },
        "UserIdentifier": {
            "type": "apiKey",
            "in": "header",
            "name": "User-Identifier",
            "description": "The partner's own identifier of a user, linked to the user before: 36 \
                            to 255 letters and digits.",
        },
    })
}

/// The combination that a client sends who knows no other, and what a user adds to it. Programs
/// that send whatever a document lists would send two credentials of one party otherwise, which is
/// refused.
pub(super) fn simplest(route: &Route) -> Value {
    if !route.client {
        return json!([]);
    }
    match route.user {
        UserProof::None => json!([{ "ApiKey": [] }]),
        UserProof::Optional => json!([{ "ApiKey": [] }, { "ApiKey": [], "UserIdentifier": [] }]),
        UserProof::WithApiKey => {
            json!([{ "ApiKey": [], "UserIdentifier": [] }, { "ClientToken": [] }])
        }
        UserProof::Required => json!([{ "ApiKey": [], "UserIdentifier": [] }]),
        UserProof::Token => json!([{ "ApiKey": [], "UserToken": [] }]),
    }
}

/// All combinations that an endpoint takes.
pub(super) fn alternatives(route: &Route) -> Value {
    if !route.client {
        return json!([]);
    }
    let mut ways = Vec::new();
    for client in CLIENT {
        let alone = match route.user {
            UserProof::None | UserProof::Optional => true,
            UserProof::WithApiKey => client == "ClientToken",
            UserProof::Required | UserProof::Token => false,
        };
        if alone {
            ways.push(json!({ client: [] }));
        }
        let with = match route.user {
            UserProof::None => &[],
            UserProof::Token => &USER[..1],
            _ => &USER[..],
        };
        ways.extend(with.iter().map(|user| json!({ client: [], *user: [] })));
    }
    Value::Array(ways)
}
