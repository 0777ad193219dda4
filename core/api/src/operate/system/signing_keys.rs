//! `GET /.well-known/jwks.json`: the public keys of receipts, for anybody.

use http::header::{CACHE_CONTROL, HeaderValue};
use http::{Method, StatusCode};
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;

use crate::Core;
use crate::auth::caller::Anyone;
use crate::endpoint::openapi::doc::Doc;
use crate::endpoint::{Endpoint, Respond, Success};
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::platform::error::{Error, Result};
use crate::trading::receipt_keys::{self, JsonWebKey, PUBLISHED_SECONDS};

/// The only version.
pub struct Any;

impl Endpoint for Any {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/.well-known/jwks.json";
    const DOC: Doc = Doc {
        summary: "Read the public keys of receipts",
        details: "A JSON Web Key Set (RFC 7517), newest first. A receipt names its key by `kid`. \
                  Keys that no longer sign stay here, and a new key stands here before it signs: \
                  keep the answer as long as `Cache-Control` says.",
        answer: r#"{"keys": [{
            "kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
            "kid": "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k", "alg": "EdDSA", "use": "sig"
        }]}"#,
        ..Doc::NONE
    };
    type Caller = Anyone;
    type Request = ();
    type Response = KeySet;

    fn read(_: &Input, _: &Anyone) -> Result<()> {
        Ok(())
    }

    async fn call(core: &Core, _: Anyone, (): ()) -> Result<KeySet> {
        let keys = receipt_keys::published(core).await?;
        Ok(KeySet { keys: keys.into_iter().map(JsonWebKey::from).collect() })
    }
}

/// A JSON Web Key Set, which anybody may cache.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "SigningKeys")]
pub struct KeySet {
    /// The keys.
    keys: Vec<JsonWebKey>,
}

impl Respond for KeySet {
    fn respond(self) -> Result<Reply> {
        let mut reply = Reply::json(StatusCode::OK, &self)?;
        let caching = HeaderValue::try_from(format!("public, max-age={PUBLISHED_SECONDS}"))
            .map_err(|error| Error::internal("write how long keys may be cached", error))?;
        reply.headers.insert(CACHE_CONTROL, caching);
        Ok(reply)
    }

    fn successes(schemas: &mut SchemaGenerator) -> Vec<Success> {
        let headers = &[("Cache-Control", "Seconds for which anybody may keep the answer.")];
        vec![Success { headers, ..Success::json::<Self>(StatusCode::OK, schemas) }]
    }
}
