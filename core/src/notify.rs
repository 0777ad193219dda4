//! Notifications to partners: events, webhooks, callbacks.

pub mod callbacks;
pub mod events;
pub mod webhooks;
