//! The lifecycle of a partner's policy, as driven by operators. A refused change has no effect; an
//! applied one is audited with its reason and reaches every edge within a second.
//!
//! - `upload`: admission of new versions
//! - `staff_upload`: those of a partner's staff
//! - `switch`: the version that serves: activate, canary, shadow, roll back, remove
//! - `store`: rows of versions and rollouts; `retention`: how long those of staff stay
//! - `target`: the policy concerned; `error`: refusals

mod audit;
pub(super) mod error;
mod retention;
mod staff_upload;
mod store;
mod switch;
pub(super) mod target;
mod upload;

pub use self::error::LifecycleError;
pub use self::staff_upload::{
    RefusedUpload, STAFF_UPLOADS_MAX, StaffUpload, UNEXAMINED_MAX, UploadTerms, refused_uploads,
    upload_by_staff,
};
pub use self::store::VersionSummary;
pub use self::switch::{
    activate, activate_in, end_rollout, remove, roll_back, rollback_target, start_canary,
    start_shadow,
};
pub use self::target::{REASON_CHARS_MAX, Target, check_persons};
pub use self::upload::{StageRequest, VersionSettings, configure, push, stage};
