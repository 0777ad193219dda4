//! The form that begins a session with an operator's own token. Before there is a session, a cookie
//! of its own says that the form came from this browser.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderValue;

use super::session::{NewSession, cookie_name, set_cookie, sign};
use super::{Attempt, alarm};
use crate::Core;
use crate::auth::oidc::Provider;
use crate::http::cookie::SameSite;
use crate::http::request::Head;
use crate::operate::admin::operator::Operator;
use crate::platform::crypto::{constant_time_eq, sha256};
use crate::platform::error::Result;

/// Cookie of a browser that was shown the form.
const COOKIE: &str = "rampart_sign_in";
/// Its lifetime, in seconds.
const COOKIE_SECONDS: i32 = 3_600;
/// Random bytes of it: 256 bits.
const COOKIE_BYTES: usize = 32;
/// Lifetime of a session that begins with a token, in seconds, unless the settings of the provider say
/// another one.
const SESSION_SECONDS: i32 = 8 * 3_600;

/// A form that is shown: its hidden token, and the cookie that goes with it.
#[derive(Debug)]
pub(in crate::operate) struct SignInForm {
    pub(in crate::operate) csrf_token: String,
    pub(in crate::operate) cookie: HeaderValue,
}

/// The form for this browser.
///
/// # Errors
/// Without entropy.
pub(in crate::operate) fn show(core: &Core, head: &Head) -> Result<SignInForm> {
    // A browser that has the cookie keeps it, so that two open pages both work.
    let secret = match head.cookie(&cookie_name(core, COOKIE)) {
        Some(known) if known.len() <= 2 * COOKIE_BYTES && is_plain(known) => known.to_owned(),
        _ => URL_SAFE_NO_PAD.encode(core.clock.random_bytes::<COOKIE_BYTES>()?),
    };
    let cookie = set_cookie(core, COOKIE, &secret, SameSite::Strict, COOKIE_SECONDS)?;
    Ok(SignInForm { csrf_token: sign(&secret, "sign-in"), cookie })
}

fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// True if the form was shown to this browser.
pub(in crate::operate) fn is_own(core: &Core, head: &Head, csrf_token: &str) -> bool {
    let own = head.cookie(&cookie_name(core, COOKIE)).map(|secret| sign(secret, "sign-in"));
    own.is_some_and(|own| constant_time_eq(own.as_bytes(), csrf_token.as_bytes()))
}

/// Begins a session with an operator's token; its cookie.
///
/// # Errors
/// 401 for a token that does not count, 429 after too many of them.
pub(in crate::operate) async fn sign_in(
    core: &Core,
    head: &Head,
    token: &str,
) -> Result<HeaderValue> {
    let attempt = Attempt::begin(core, head)?;
    let Some(operator) = Operator::of_token(core, token).await? else {
        return Err(attempt.fail("wrong"));
    };
    if operator.is_break_glass() {
        alarm(core, head);
    }
    let seconds = core.oidc.as_ref().map_or(SESSION_SECONDS, Provider::session_seconds);
    let token_digest = Some(sha256(token));
    NewSession { operator: &operator, token_digest, seconds }.begin(core).await
}
