//! Settings of operators.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize};

use crate::platform::crypto::Secret;

/// `operators`
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Operators {
    /// Largest payment or refund that an operator reports alone, in whatever currency and without a
    /// rate; above it a second one must agree.
    #[schemars(
        range(min = 0, max = 1_000_000_000),
        extend("x-unit" = "units of the order's fiat currency")
    )]
    pub payment_alone_max: u32,
    /// OpenID Connect provider that operators log in at; without it they have tokens alone.
    pub oidc: Option<Oidc>,
}

impl Default for Operators {
    fn default() -> Self {
        Self { payment_alone_max: 1_000, oidc: None }
    }
}

/// `operators.oidc`
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Oidc {
    /// URL of the provider, exactly as its tokens name it; plain HTTP on loopback alone.
    #[schemars(extend("x-default" = "required"))]
    pub issuer: String,
    /// Id that the provider knows this service by.
    #[schemars(extend("x-default" = "required"))]
    pub client_id: String,
    /// Secret that goes with it.
    #[serde(skip_serializing)]
    #[schemars(extend("x-default" = "none: a public client, protected by PKCE alone"))]
    pub client_secret: Option<Secret>,
    /// Audience that a bearer token must be for; a login in a browser is for the client id.
    #[schemars(extend("x-default" = "operators.oidc.client_id"))]
    pub audience: Option<String>,
    /// Scopes that a login asks for.
    #[schemars(extend("x-default" = "openid profile email"))]
    pub scopes: Names,
    /// Claim with the person's name as it is shown and audited, which nobody should be able to
    /// choose; `iss` and `sub` tell persons apart, dots lead into objects.
    #[schemars(extend("x-default" = "preferred_username"))]
    pub name_claim: String,
    /// Claim with the person's groups or roles, a text or a list; dots lead into objects.
    #[schemars(extend("x-default" = "roles"))]
    pub role_claim: String,
    /// Operators' roles by a value of the claim; without any, values that are names of roles count.
    #[schemars(extend("x-default" = "none: a value is the name of a role"))]
    pub roles: BTreeMap<String, Names>,
    /// Lifetime of a session that a login begins.
    #[schemars(range(min = 60, max = 86_400), extend("x-default" = "28800"))]
    pub session_seconds: u32,
}

impl Default for Oidc {
    fn default() -> Self {
        Self {
            issuer: String::new(),
            client_id: String::new(),
            client_secret: None,
            audience: None,
            scopes: Names(["openid", "profile", "email"].map(str::to_owned).into()),
            name_claim: "preferred_username".to_owned(),
            role_claim: "roles".to_owned(),
            roles: BTreeMap::new(),
            session_seconds: 28_800,
        }
    }
}

/// A list of names, or one text with commas or spaces between them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Names(pub Vec<String>);

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Texts {
            One(String),
            Many(Vec<String>),
        }
        Ok(Self(match Texts::deserialize(deserializer)? {
            Texts::One(text) => {
                let names = text.split([',', ' ']).filter(|name| !name.is_empty());
                names.map(str::to_owned).collect()
            }
            Texts::Many(names) => names,
        }))
    }
}

impl JsonSchema for Names {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Names".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Vec::<String>::json_schema(generator)
    }
}
