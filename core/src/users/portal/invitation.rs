//! What a partner sends a user to us with: its identifier of the user, and the way back. It stands
//! sealed in the address of a page, so nobody reads, makes up or changes one.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Core;
use crate::auth::caller::Client;
use crate::http::html::dead_link;
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::platform::crypto::Purpose;
use crate::platform::error::{Error, Result};
use rampart_types::{ClientId, ReturnUrl, UserIdentifier};

/// How long an invitation counts.
const LIFETIME: TimeDelta = TimeDelta::hours(24);
/// Characters of the client's id before the sealed part: a UUID in bare hexadecimal.
const CLIENT_CHARS: usize = 32;
/// Longest text that is opened, in bytes; a return URL of full length makes some 3,500.
const TEXT_BYTES_MAX: usize = 4_096;

/// An invitation of one partner to one user.
#[derive(Debug)]
pub struct Invitation {
    pub(crate) identifier: UserIdentifier,
    pub(crate) return_url: ReturnUrl,
}

/// What is sealed.
#[derive(Deserialize, Serialize)]
struct Claims {
    identifier: String,
    return_url: String,
    #[serde(with = "chrono::serde::ts_seconds")]
    expires_at: DateTime<Utc>,
}

impl Invitation {
    /// The invitation as it stands in an address, from now on for a day; no character of it must be
    /// escaped.
    ///
    /// # Errors
    /// Without entropy.
    pub(crate) fn seal(&self, core: &Core, client: ClientId) -> Result<String> {
        let claims = Claims {
            identifier: self.identifier.as_str().to_owned(),
            return_url: self.return_url.as_str().to_owned(),
            expires_at: core.clock.now() + LIFETIME,
        };
        let plain = serde_json::to_vec(&claims)
            .map_err(|error| Error::internal("write an invitation", error))?;
        let key = core.keys.sealing_key(Purpose::Identifiers)?;
        let sealed = key.seal(&core.clock, &context(client), &plain)?;
        Ok(format!("{}{}", client.uuid().simple(), URL_SAFE_NO_PAD.encode(sealed)))
    }

    /// The invitation that a text holds and the client it is of; `None` when it has ended, is none
    /// of ours, or its client is gone or suspended.
    pub(crate) fn open(core: &Core, text: &str, request_id: &str) -> Option<(Client, Self)> {
        let text = Some(text).filter(|text| text.len() <= TEXT_BYTES_MAX)?;
        let (client, sealed) = text.split_at_checked(CLIENT_CHARS)?;
        let client = ClientId::from(Uuid::try_parse(client).ok()?);
        let key = core.keys.sealing_key(Purpose::Identifiers).ok()?;
        let plain = key.open(&context(client), &URL_SAFE_NO_PAD.decode(sealed).ok()?).ok()?;
        let claims: Claims = serde_json::from_slice(&plain).ok()?;
        let invitation = Self {
            identifier: claims.identifier.parse().ok()?,
            return_url: claims.return_url.parse().ok()?,
        };
        let client = Client::for_page(core, client, request_id)?;
        (core.clock.now() < claims.expires_at).then_some((client, invitation))
    }
}

fn context(client: ClientId) -> String {
    format!("invitation/{client}")
}

/// The address of a page, not looked into yet.
#[derive(Debug)]
pub struct Link {
    region: String,
    session: String,
    request_id: String,
}

impl Link {
    /// What stands in the path: `/{region}/…/{session}`.
    pub(super) fn read(input: &Input) -> Self {
        let param = |name| input.param(name).to_owned();
        let request_id = input.head.request_id.clone();
        Self { region: param("region"), session: param("session"), request_id }
    }

    /// Who is invited by whom; `None` when the page is not served in this region either.
    pub(super) fn open(&self, core: &Core) -> Option<(Client, Invitation)> {
        let (client, invitation) = Invitation::open(core, &self.session, &self.request_id)?;
        client.catalogue.regions.contains(&self.region).then_some((client, invitation))
    }

    /// The page for who is invited, or that the link is dead.
    pub(super) fn page(
        &self,
        core: &Core,
        show: impl FnOnce(&Client, &Invitation) -> Reply,
    ) -> Reply {
        self.open(core).map_or_else(not_found, |(client, invitation)| show(&client, &invitation))
    }

    /// The website's locale of the page.
    pub(super) fn region(&self) -> &str {
        &self.region
    }
}

/// For an address that has ended or is none of ours.
pub(super) fn not_found() -> Reply {
    dead_link("Please open it again from the shop that you came from.")
}
