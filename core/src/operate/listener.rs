//! The operators' listener: logins, the console's pages, and the operators' API.

use std::sync::Arc;

use super::admin::login::console as login;
use super::admin::operator::Operator;
use super::admin::{browser, serve};
use super::console;
use crate::Core;
use crate::endpoint::private_api;
use crate::http::reply::Reply;
use crate::http::request::{Head, UnreadBody};
use crate::platform::error::Result;

impl Core {
    /// Answers a request of the operators' listener. Always answers.
    pub async fn admin(self: &Arc<Self>, head: Head, body: impl UnreadBody) -> Reply {
        let request_id = head.request_id.clone();
        private_api::reply(&request_id, self.answer_operator(head, body)).await
    }

    async fn answer_operator(self: &Arc<Self>, head: Head, body: impl UnreadBody) -> Result<Reply> {
        if let Some(reply) = login::answer(self, &head).await? {
            return Ok(reply);
        }
        if console::has(&head.path) {
            return console::answer(self, &head, body).await;
        }
        browser::check_origin(&head)?;
        // Before the path is looked at: a stranger learns nothing of what exists, and takes no memory.
        let operator = Operator::log_in(self, &head).await?;
        serve(self, operator, head, body.read(true).await?).await
    }
}
