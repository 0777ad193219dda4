//! A policy's description of itself, and the `meta` interface built from it.

use crate::Problem;
use crate::bindings::about::exports::rampart::policy::meta;

/// The type of a setting.
pub use meta::ConfigType as SettingType;

/// The description of a policy, shown to operators.
pub struct About {
    /// `partner/name` or reverse-DNS.
    pub name: &'static str,
    /// Semantic version of the policy.
    pub version: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// The operator's settings.
    pub settings: &'static [Setting],
    /// Names of the keys it expects to be bound.
    pub keys: &'static [&'static str],
}

/// A setting for the operator.
pub struct Setting {
    /// Its key.
    pub key: &'static str,
    /// Its type.
    pub is: SettingType,
    /// True if the policy cannot run without it.
    pub required: bool,
    /// Shown to the operator.
    pub help: &'static str,
}

impl Setting {
    /// A setting that may be left out.
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

/// A problem as the contract's type.
pub(crate) fn problems(Problem { key, problem }: Problem) -> Vec<meta::ConfigProblem> {
    vec![meta::ConfigProblem { key: key.into(), problem }]
}
