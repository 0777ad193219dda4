//! The operators' listener: logins, the console's pages, and the operators' API.

use std::sync::Arc;

use http::HeaderMap;

use super::admin::login::console as login;
use super::admin::operator::Operator;
use super::admin::{browser, serve};
use super::console;
use crate::Core;
use crate::auth::caller::Caller as _;
use crate::endpoint::private_api;
use crate::endpoint::refusal_page::wants_page;
use crate::http::reply::Reply;
use crate::http::request::{Head, UnreadBody};
use crate::platform::db::PoolKind;
use crate::platform::db::share_holder::run_for_operator;
use crate::platform::error::Result;

/// Answers a request of the operators' listener. Always answers: a browser that asks for the
/// console with a page, whatever has failed.
pub async fn answer(core: &Arc<Core>, head: Head, body: impl UnreadBody) -> Reply {
    let request_id = head.request_id.clone();
    let is_page = is_page(&head.path, &head.headers);
    let answering = async {
        match answer_operator(core, head, body).await {
            Err(error) if is_page => Ok(console::render_error(core, &error, &request_id)),
            answer => answer,
        }
    };
    private_api::reply(core, PoolKind::Operators, &request_id, answering).await
}

/// The answer to a request of the operators' listener whose call came to no end: `plain`, or a
/// page for a browser that asks for the console.
pub fn failure(path: &str, headers: &HeaderMap, request_id: &str, plain: Reply) -> Reply {
    match is_page(path, headers) {
        true => console::render_failure(&plain, request_id),
        false => plain,
    }
}

async fn answer_operator(core: &Arc<Core>, head: Head, body: impl UnreadBody) -> Result<Reply> {
    if let Some(reply) = login::answer(core, &head).await? {
        return Ok(reply);
    }
    if console::has(&head.path) {
        return console::answer(core, &head, body).await;
    }
    browser::check_origin(&head)?;
    // Before the path is looked at: a stranger learns nothing of what exists, and takes no memory.
    let operator = Operator::log_in(core, &head).await?;
    let identity = operator.key_owner().into();
    let serving = async move { serve(core, operator, head, body.read(true).await?).await };
    run_for_operator(identity, Box::pin(serving)).await
}

/// True for a browser's request of a page of the console.
fn is_page(path: &str, headers: &HeaderMap) -> bool {
    console::has(path) && wants_page(headers)
}
