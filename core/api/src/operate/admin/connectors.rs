//! Connectors and their tokens.

pub mod card_element;
pub mod create;
pub mod read;
pub mod rotate;

use crate::Core;
use crate::endpoint::openapi::doc::{Kind, Member, required};
use crate::platform::error::{Denial, Result};

/// Longest name, in characters.
const NAME_CHARS_MAX: usize = 63;
/// Most connectors, and most entries of each of their lists.
pub(in crate::operate) const CONNECTORS_MAX: i64 = 200;

/// The path's `{name}`.
const NAME: Member = required("name", Kind::Text, "The connector's name.");

/// Checks that there is such a connector: nobody is asked to agree to a change of none.
///
/// # Errors
/// 404 without the connector.
async fn check_known(core: &Core, name: &str) -> Result<()> {
    let known = sqlx::query_scalar!(
        r#"select exists (select from connector where name = $1 and not runs_inside) as "known!""#,
        name,
    );
    if !known.fetch_one(&core.db).await? {
        return Err(Denial::not_found("connector").into());
    }
    Ok(())
}
