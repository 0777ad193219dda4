//! Cookies of pages. No script can read them.

use http::HeaderValue;
use http::header::SET_COOKIE;

use crate::Core;
use crate::http::reply::Reply;
use crate::platform::error::{Error, Result};

/// The requests from other sites with which a browser sends a cookie.
#[derive(Clone, Copy, Debug)]
pub enum SameSite {
    /// Those that open a page.
    Lax,
    /// None.
    Strict,
}

/// True when browsers reach the pages of the public listener over TLS. Their cookies have the prefix
/// `__Host-` then, which browsers take from this very host alone.
pub fn is_tls(core: &Core) -> bool {
    core.settings.public_url.starts_with("https://")
}

/// Sets a cookie of the public listener for the whole host, for so many seconds.
///
/// # Errors
/// Never for values in base64; the header's type says it could.
pub fn set(
    core: &Core,
    reply: &mut Reply,
    name: &str,
    value: &str,
    seconds: i64,
    same_site: SameSite,
) -> Result<()> {
    let cookie = header(name, value, seconds, same_site, is_tls(core))?;
    reply.headers.append(SET_COOKIE, cookie);
    Ok(())
}

/// A cookie for the whole host, for so many seconds, as a header's value.
///
/// # Errors
/// As of [`set`].
pub fn header(
    name: &str,
    value: &str,
    seconds: i64,
    same_site: SameSite,
    is_tls: bool,
) -> Result<HeaderValue> {
    let secure = if is_tls { "; Secure" } else { "" };
    // The variants are named as the attribute's values.
    let text = format!(
        "{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite={same_site:?}{secure}"
    );
    HeaderValue::try_from(text).map_err(|error| Error::internal("set a cookie", error))
}
