//! Connectors and their tokens.

pub mod card_element;
pub mod create;
pub mod read;
pub mod rotate;

use super::approvals;
use super::operator::Operator;
use crate::Core;
use crate::endpoint::Endpoint;
use crate::endpoint::openapi::doc::{Kind, Member, required};
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::platform::error::{Denial, Result};

/// Longest name, in characters.
const NAME_CHARS_MAX: usize = 63;
/// Most connectors, and most entries of each of their lists.
pub(in crate::operate) const CONNECTORS_MAX: i64 = 200;

/// The path's `{name}`.
const NAME: Member = required("name", Kind::Text, "The connector's name.");

/// Holds a change of a connector back until a second operator has agreed, as [`approvals::hold`]
/// does: nobody is asked about one that does not exist.
///
/// # Errors
/// 404 without the connector; 409 when too many calls of this operator wait.
async fn hold_known<E: Endpoint>(
    core: &Core,
    input: &Input,
    operator: &Operator,
    name: &str,
) -> Result<Option<Reply>> {
    let known = sqlx::query_scalar!(
        r#"select exists (select from connector where name = $1 and not runs_inside) as "known!""#,
        name,
    );
    if !known.fetch_one(&core.db).await? {
        return Err(Denial::not_found("connector").into());
    }
    approvals::hold::<E>(core, input, operator).await
}
