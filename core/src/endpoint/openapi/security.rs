//! Credentials in the document's terms: an alternative is a set of credentials that come together.

use serde_json::{Value, json};

use crate::auth::caller::UserProof;
use crate::endpoint::Route;

const CLIENT: [&str; 2] = ["ClientToken", "ApiKey"];
const USER: [&str; 2] = ["UserToken", "UserIdentifier"];

/// The credentials that a client sends who knows no other. The client's token is none of them:
/// generated clients send every scheme that they have a value for, and two are refused.
pub(super) fn schemes() -> Value {
    json!({
        "ApiKey": {
            "type": "apiKey",
            "in": "header",
            "name": "X-Api-Key",
            "description": "A key issued by the operator. The `token` of `POST /api/v1/authenticate` in \
                            `Authorization: Bearer` takes its place in every operation, and lets \
                            it read all of the client's users where `x-credentials` says so; \
                            exactly one of both per request.",
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

/// The combination of [`schemes`] that the endpoint takes, and what a user adds to it where that is
/// optional: one credential of each party.
pub(super) fn simplest(route: &Route) -> Value {
    if !route.client {
        return json!([]);
    }
    match route.user {
        UserProof::None => json!([{ "ApiKey": [] }]),
        UserProof::Optional => json!([{ "ApiKey": [] }, { "ApiKey": [], "UserIdentifier": [] }]),
        UserProof::WithApiKey | UserProof::Required => {
            json!([{ "ApiKey": [], "UserIdentifier": [] }])
        }
        UserProof::Token => json!([{ "ApiKey": [], "UserToken": [] }]),
    }
}

/// All combinations that an endpoint takes, the client's token (`ClientToken`) included.
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
