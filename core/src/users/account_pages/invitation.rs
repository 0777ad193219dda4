//! A partner's invitation of a user: its identifier of the user and a return URL, sealed into the
//! URL of a page, so that it can be neither read nor forged.

use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::sign_in_page::SignInPage;
use crate::Core;
use crate::auth::caller::Client;
use crate::http::device;
use crate::http::html::dead_link;
use crate::http::language::Texts;
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::platform::crypto::Purpose;
use crate::platform::error::{Error, Result};
use rampart_types::{ClientId, ReturnUrl, UserIdentifier};

/// Lifetime of an invitation.
const LIFETIME: TimeDelta = TimeDelta::hours(24);
/// Characters of the client's id before the sealed part: a UUID in bare hexadecimal.
const CLIENT_CHARS: usize = 32;
/// Longest text that is opened, in bytes; a return URL of full length makes some 3,500.
const TEXT_BYTES_MAX: usize = 4_096;

/// A partner's invitation of one user.
#[derive(Debug)]
pub struct Invitation {
    pub(crate) identifier: UserIdentifier,
    pub(crate) return_url: ReturnUrl,
}

/// The sealed content.
#[derive(Deserialize, Serialize)]
struct Claims {
    identifier: String,
    return_url: String,
    #[serde(with = "chrono::serde::ts_seconds")]
    expires_at: DateTime<Utc>,
}

impl Invitation {
    /// Seals the invitation for a day, as text that needs no escaping in a URL.
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

    /// Opens an invitation and returns its client; `None` when it is expired or forged, or its client
    /// is deleted or suspended.
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

/// The URL parameters of a page, not validated yet.
#[derive(Debug)]
pub struct Link {
    region: String,
    session: String,
    request_id: String,
    peer: IpAddr,
    /// The reader's, as [`device::named`] has it.
    device: Option<String>,
    pub(super) texts: Texts,
}

impl Link {
    /// Reads the path `/{region}/…/{session}`.
    pub(super) fn read(input: &Input) -> Self {
        let param = |name| input.param(name).to_owned();
        let (request_id, peer) = (input.head.request_id.clone(), input.head.peer);
        let device = input.head.header("user-agent").and_then(device::named);
        let texts = Texts::of(input);
        Self { region: param("region"), session: param("session"), request_id, peer, device, texts }
    }

    /// Opens the invitation; `None` when it is invalid or the region is not served.
    pub(super) fn open(&self, core: &Core) -> Option<(Client, Invitation)> {
        let (client, invitation) = Invitation::open(core, &self.session, &self.request_id)?;
        let is_served = client.catalogue.page_regions.contains(&self.region);
        is_served.then(|| (client.visited_from(self.peer), invitation))
    }

    /// The page of the invitation, or that of a dead link.
    pub(super) fn page(&self, core: &Core, show: impl FnOnce(InvitedPage<'_>) -> Reply) -> Reply {
        let Some((client, invitation)) = self.open(core) else { return self.not_found(core) };
        show(InvitedPage { core, link: self, client: &client, invitation: &invitation })
    }

    /// The page's website locale.
    pub(super) fn region(&self) -> &str {
        &self.region
    }

    /// The reader's device, if it is known.
    pub(super) fn device(&self) -> Option<&str> {
        self.device.as_deref()
    }

    /// The sealed invitation, as it stands in the path.
    pub(super) fn session(&self) -> &str {
        &self.session
    }

    /// The page of an expired or forged link.
    pub(super) fn not_found(&self, core: &Core) -> Reply {
        dead_link(self.texts, &core.settings.pages)
    }
}

/// A page that a link with a valid invitation has opened.
#[derive(Clone, Copy)]
pub(super) struct InvitedPage<'a> {
    pub(super) core: &'a Core,
    pub(super) link: &'a Link,
    pub(super) client: &'a Client,
    pub(super) invitation: &'a Invitation,
}

impl<'a> InvitedPage<'a> {
    /// The page as the forms see it that sign in.
    pub(super) const fn sign_in(self) -> SignInPage<'a> {
        SignInPage::new(self.client, self.link.texts, &self.core.settings.pages)
    }
}
