//! What a policy says about itself, and the `meta` interface made of it.

use crate::Problem;
use crate::bindings::about::exports::rampart::policy::meta;

/// The type of a setting.
pub use meta::ConfigType as SettingType;

/// A policy in the operator's eyes.
pub struct About {
    /// `partner/name` or reverse-DNS.
    pub name: &'static str,
    /// Semantic version of the policy.
    pub version: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// What the operator may set.
    pub settings: &'static [Setting],
    /// Names of the keys it expects to be bound.
    pub keys: &'static [&'static str],
}

/// One thing the operator may set.
pub struct Setting {
    /// Its key.
    pub key: &'static str,
    /// Its type.
    pub is: SettingType,
    /// Whether the policy does without it.
    pub required: bool,
    /// Shown to the operator.
    pub help: &'static str,
}

impl Setting {
    /// A setting the policy does without.
    pub const fn optional(key: &'static str, is: SettingType, help: &'static str) -> Self {
        Self { key, is, required: false, help }
    }
}

pub(crate) fn describe(about: &About, kind: meta::PolicyKind) -> meta::PolicyInfo {
    let field = |setting: &Setting| meta::ConfigField {
        key: setting.key.into(),
        type_: setting.is,
        required: setting.required,
        help: setting.help.into(),
    };
    meta::PolicyInfo {
        name: about.name.into(),
        version: about.version.into(),
        summary: about.summary.into(),
        policies: vec![kind],
        config: about.settings.iter().map(field).collect(),
        keys: about.keys.iter().map(|key| (*key).into()).collect(),
    }
}

/// A problem in the words of the contract.
pub(crate) fn problems(Problem { key, problem }: Problem) -> Vec<meta::ConfigProblem> {
    vec![meta::ConfigProblem { key: key.into(), problem }]
}
