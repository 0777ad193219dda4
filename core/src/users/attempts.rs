//! Rate limits per e-mail address: login, reset-password and exists share one bucket, so that none
//! of them circumvents the others (section 4 of the contract). A passkey has a bucket of its own, and
//! the codes of a user have two: of a minute and of a day. Codes by e-mail have one for the mails and
//! one for the attempts. Most attempts are counted by this edge and then by all together: what this
//! edge refuses costs the database nothing.
//!
//! Nobody on a page takes from the rate that a client's own logins share, and whoever only asks for a
//! link to a new password takes from that of no login: each could be a stranger who keeps users out.

use std::net::IpAddr;
use std::time::Duration;

use crate::Core;
use crate::auth::caller::Client;
use crate::auth::totp::DAY_QUOTA;
use crate::platform::crypto::sha256;
use crate::platform::db::Connection;
use crate::platform::error::{Code, Error, Result};
use crate::platform::network::surrounding_network;
use crate::platform::rate_limit::{Decision, KeyedGcra, Quota};
use crate::platform::shared_bucket;
use rampart_types::{ClientId, EmailAddress, UserId};

/// Limit of mails to one address that are requested by others.
const MAIL_QUOTA: Quota = Quota::new(5, 3_600, 5);
/// Limit of attempts with the codes mailed to one address, whichever code it is: ten at once, then
/// one an hour, so that one address of 26,000 falls in a day.
const EMAIL_CODE_QUOTA: Quota = Quota::new(24, 86_400, 10);
/// The part of what a client's visitors have together that those of one network have, /24 in IPv4 and /48
/// in IPv6: one in so many, and no less than for one address.
const VISITOR_PARTS: u32 = 4;
/// Limit of forms for a forgotten password from one network, /24 in IPv4 and /48 in IPv6, at one client:
/// a part of what all networks have together.
const FORGOTTEN_QUOTA: Quota = Quota::new(10, 60, 10);
/// Most buckets of addresses, of clients, and of networks.
const BUCKETS_MAX: u64 = 65_536;
/// Idle time after which a bucket is evicted; it is full again by then.
const BUCKET_IDLE: Duration = Duration::from_secs(3_600);

/// The rate of logins in the words of the documentation; a macro, so that `concat!` takes it.
macro_rules! login_rate {
    () => {
        "Logins, `exists`, `reset-password` and an update's `oldPassword` share a rate: by default \
         five tries a minute for one e-mail address, sixty for all of a client's."
    };
}

pub(super) use login_rate;

/// Those whose attempts at a client share a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Askers {
    /// The partner, by its credential.
    Partner,
    /// Visitors of pages that a link of the partner opens.
    Visitors,
    /// Strangers at the page for a forgotten password, which opens without a link.
    Strangers,
}

impl Askers {
    fn of(client: &Client) -> Self {
        if client.is_of_page() { Self::Visitors } else { Self::Partner }
    }

    /// The name of their bucket.
    const fn as_str(self) -> &'static str {
        match self {
            Self::Partner => "users",
            Self::Visitors => "visitors",
            Self::Strangers => "strangers",
        }
    }
}

/// Buckets by address, known or not, and by client. A bucket whose rate is a setting of the partner
/// is of one quota.
#[derive(Debug)]
pub struct Attempts {
    by_email: KeyedGcra<([u8; 32], Quota)>,
    by_client: KeyedGcra<(ClientId, Askers, Quota)>,
    visitors: KeyedGcra<(ClientId, IpAddr, Quota)>,
    challenges: KeyedGcra<(ClientId, IpAddr, Quota)>,
    forgotten: KeyedGcra<(ClientId, IpAddr)>,
    mails: KeyedGcra<[u8; 32]>,
}

impl Default for Attempts {
    fn default() -> Self {
        Self {
            by_email: KeyedGcra::new(BUCKETS_MAX, BUCKET_IDLE),
            by_client: KeyedGcra::new(BUCKETS_MAX, BUCKET_IDLE),
            visitors: KeyedGcra::new(BUCKETS_MAX, BUCKET_IDLE),
            challenges: KeyedGcra::new(BUCKETS_MAX, BUCKET_IDLE),
            forgotten: KeyedGcra::new(BUCKETS_MAX, BUCKET_IDLE),
            mails: KeyedGcra::new(BUCKETS_MAX, BUCKET_IDLE),
        }
    }
}

impl Attempts {
    /// Counts an attempt for this address, before anything is hashed or looked up.
    ///
    /// # Errors
    /// Code 920, and when the database cannot be used.
    pub(super) async fn count(
        &self,
        core: &Core,
        client: &Client,
        email: &EmailAddress,
    ) -> Result<()> {
        self.count_named(core, client, Askers::of(client), key(client, email)).await
    }

    /// Counts a link to a new password for this address. Those that are asked for on the page have buckets
    /// of their own.
    ///
    /// # Errors
    /// Code 920, and when the database cannot be used.
    pub(super) async fn count_reset(
        &self,
        core: &Core,
        client: &Client,
        email: &EmailAddress,
    ) -> Result<()> {
        if !client.is_of_page() {
            return self.count(core, client, email).await;
        }
        let key = sha256(&format!("forgotten/{}/{}", client.id(), email.as_str()));
        self.count_named(core, client, Askers::Strangers, key).await
    }

    /// Counts a form for a forgotten password that comes from this address, before it takes anything from
    /// the rate of all of them.
    ///
    /// # Errors
    /// Code 920, and when the database cannot be used.
    pub(super) async fn count_forgotten(
        &self,
        core: &Core,
        client: &Client,
        peer: IpAddr,
    ) -> Result<()> {
        let (network, now) = (surrounding_network(peer), core.clock.monotonic_ns());
        let local = self.forgotten.take((client.id(), network), FORGOTTEN_QUOTA, now);
        admit(core, client, &local)?;
        let bucket = sha256(&format!("forgotten-network/{}/{network}", client.id()));
        admit(core, client, &shared_bucket::take(core, &bucket, FORGOTTEN_QUOTA).await?)
    }

    /// Counts a challenge that a visitor asks for who has named nobody. Each is a row for some minutes, and
    /// a network has no more of them than it may answer. By this edge alone, so that it costs the database
    /// nothing.
    ///
    /// # Errors
    /// Code 920.
    pub(super) fn count_challenge(&self, core: &Core, client: &Client) -> Result<()> {
        let Some(network) = client.visitor_network() else { return Ok(()) };
        let (part, now) = (visitors_part(client), core.clock.monotonic_ns());
        admit(core, client, &self.challenges.take((client.id(), network, part), part, now))
    }

    /// Counts an attempt with this passkey, known or not, by its identifier as the form has it.
    ///
    /// # Errors
    /// Code 920, and when the database cannot be used.
    pub(super) async fn count_passkey(
        &self,
        core: &Core,
        client: &Client,
        credential: &str,
    ) -> Result<()> {
        let key = sha256(&format!("passkeys/{}/{credential}", client.id()));
        self.count_named(core, client, Askers::of(client), key).await
    }

    /// Counts a code of this user's authenticator app.
    ///
    /// # Errors
    /// Code 920, and when the database cannot be used.
    pub(super) async fn count_code(
        &self,
        core: &Core,
        client: &Client,
        user: UserId,
    ) -> Result<()> {
        let key = sha256(&format!("codes/{}/{user}", client.id()));
        self.count_named(core, client, Askers::of(client), key).await?;
        let day = sha256(&format!("codes-of-a-day/{}/{user}", client.id()));
        admit(core, client, &shared_bucket::take(core, &day, DAY_QUOTA).await?)
    }

    /// Counts an attempt by its own bucket, by that of the visitor's network, and then by the client's. One
    /// that is refused takes nothing from what follows: guesses at one address, or from one network, would
    /// keep everybody else out.
    async fn count_named(
        &self,
        core: &Core,
        client: &Client,
        askers: Askers,
        login: [u8; 32],
    ) -> Result<()> {
        let now = core.clock.monotonic_ns();
        let by_client = sha256(&format!("{}/{}", askers.as_str(), client.id()));
        let rates = &client.tenant.rates;
        let (own, all) = (rates.login, rates.client_login);
        let (network, part) = (client.visitor_network(), visitors_part(client));
        admit(core, client, &self.by_email.take((login, own), own, now))?;
        if let Some(network) = network {
            let visitors = (client.id(), network, part);
            admit(core, client, &self.visitors.take(visitors, part, now))?;
        }
        admit(core, client, &self.by_client.take((client.id(), askers, all), all, now))?;
        admit(core, client, &shared_bucket::take(core, &login, own).await?)?;
        if let Some(network) = network {
            let visitors = sha256(&format!("visitors-network/{}/{network}", client.id()));
            admit(core, client, &shared_bucket::take(core, &visitors, part).await?)?;
        }
        admit(core, client, &shared_bucket::take(core, &by_client, all).await?)
    }

    /// Counts a mail to this address.
    ///
    /// # Errors
    /// ER354.
    pub(crate) async fn count_mail(
        &self,
        core: &Core,
        client: &Client,
        email: &EmailAddress,
    ) -> Result<()> {
        let now = core.clock.monotonic_ns();
        let local = self.mails.take(key(client, email), MAIL_QUOTA, now);
        let mails = sha256(&format!("mails/{}/{}", client.id(), email.as_str()));
        match local.allowed && shared_bucket::take(core, &mails, MAIL_QUOTA).await?.allowed {
            true => Ok(()),
            false => Err(Error::with_detail(
                Code::PasswordResetFailed,
                "at most 5 mails an hour to one address",
            )),
        }
    }
}

/// Counts a mail with a code to this address, in the caller's transaction; `false` when there were
/// enough. Links to set a password are counted apart: neither kind uses up the other.
///
/// # Errors
/// When the database cannot be used.
pub(super) async fn admits_code_mail(
    conn: &mut Connection,
    core: &Core,
    client: &Client,
    email: &EmailAddress,
) -> Result<bool> {
    let bucket = sha256(&format!("code-mails/{}/{}", client.id(), email.as_str()));
    let decision = shared_bucket::take_within(conn, core, &bucket, MAIL_QUOTA).await?;
    Ok(is_admitted(core, client, &decision))
}

/// Counts an attempt with a code that was mailed to this address; `false` when there were enough.
///
/// # Errors
/// When the database cannot be used.
pub(super) async fn admits_email_code(
    core: &Core,
    client: &Client,
    email: &EmailAddress,
) -> Result<bool> {
    let bucket = sha256(&format!("email-codes/{}/{}", client.id(), email.as_str()));
    let decision = shared_bucket::take(core, &bucket, EMAIL_CODE_QUOTA).await?;
    Ok(is_admitted(core, client, &decision))
}

/// The rate of the visitors of one network.
fn visitors_part(client: &Client) -> Quota {
    let rates = &client.tenant.rates;
    rates.client_login.divided(VISITOR_PARTS).or_faster(rates.login)
}

fn key(client: &Client, email: &EmailAddress) -> [u8; 32] {
    sha256(&format!("users/{}/{}", client.id(), email.as_str()))
}

fn admit(core: &Core, client: &Client, decision: &Decision) -> Result<()> {
    if is_admitted(core, client, decision) {
        return Ok(());
    }
    Err(Error::rate_limited("login", *decision))
}

fn is_admitted(core: &Core, client: &Client, decision: &Decision) -> bool {
    if !decision.allowed {
        core.metrics.rate_limited("login", &client.tenant.slug);
    }
    decision.allowed
}
