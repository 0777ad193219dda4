//! A tenant's policies in a snapshot: versions in use, their native code, their keys.
//!
//! Below the rest of the room: tenants hold [`TenantPolicies`], and evaluation, which needs the
//! caller, is above both.

mod active;
mod blocking_runs;
mod compile;
mod compile_permits;
mod compiled;
pub(crate) mod configuration;
mod fuel_budget;
mod limits;
mod load;
mod rollout;
mod root_keys;
mod sample_throttle;
mod slot;
pub mod verification_keys;

pub use self::active::{ActivePolicy, TenantPolicies};
pub use self::compiled::Policies;
pub use self::fuel_budget::FuelBudget;
pub use self::rollout::Rollout;
pub use self::root_keys::fingerprint;
pub use self::sample_throttle::SAMPLES_MAX;
pub use self::slot::Slot;
pub use self::verification_keys::{ALGORITHMS, algorithm, algorithm_name, is_secret, seal_context};
