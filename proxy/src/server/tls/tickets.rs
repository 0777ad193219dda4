//! rustls makes its ticket keys at random, so that a ticket is good for one process only: here they
//! are derived from the master key, another one each day, and every edge opens every edge's tickets.
//! rustls takes a client's certificate from a ticket without checking it again, and puts it into the
//! next one: a ticket is good only under the authorities under which it was checked, and no longer than
//! the certificate.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rampart_core::platform::clock::Clock;
use rampart_core::platform::crypto::{DataKey, MasterKey, Purpose, sha256};
use rustls::pki_types::CertificateDer;
use rustls::server::ProducesTickets;

use super::x509;

/// Seconds that a ticket is good for, at most: its key is used for this day and the next.
const LIFETIME_SECONDS: u32 = 24 * 60 * 60;
/// Bytes in front of a ticket that name its day.
const DAY_BYTES: usize = 8;
/// The context that tickets are sealed for, without clients' certificates.
const CONTEXT: &str = "tls ticket";

/// Seals and opens the session tickets of all edges with this master key and these authorities.
#[derive(Debug)]
pub(super) struct Tickets {
    keys: MasterKey,
    clock: Clock,
    context: String,
}

impl Tickets {
    /// Of a listener that checks clients' certificates against `authorities`, in any order; none where
    /// it asks for no certificate.
    pub(super) fn new(
        keys: &MasterKey,
        clock: &Clock,
        mut authorities: Vec<CertificateDer<'static>>,
    ) -> Self {
        authorities.sort_by_cached_key(|one| one.to_vec());
        authorities.dedup();
        let all: Vec<u8> = authorities.iter().flat_map(|one| one.iter().copied()).collect();
        let context = match all.is_empty() {
            true => CONTEXT.to_owned(),
            false => format!("{CONTEXT} {}", STANDARD.encode(sha256(&all))),
        };
        Self { keys: keys.clone(), clock: clock.clone(), context }
    }

    fn today(&self) -> i64 {
        self.clock.now().timestamp().div_euclid(i64::from(LIFETIME_SECONDS))
    }

    fn key(&self, day: i64) -> Option<DataKey> {
        self.keys.sealing_key(Purpose::TlsTickets { day }).ok()
    }
}

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        LIFETIME_SECONDS
    }

    /// Without entropy there is no ticket.
    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let day = self.today();
        let sealed = self.key(day)?.seal(&self.clock, &self.context, plain).ok()?;
        Some([&day.to_be_bytes()[..], &sealed].concat())
    }

    /// Those of yesterday too, and of an edge whose clock is ahead at midnight.
    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        let (day, sealed) = cipher.split_first_chunk::<DAY_BYTES>()?;
        let (day, today) = (i64::from_be_bytes(*day), self.today());
        if !(today - 1..=today + 1).contains(&day) {
            return None;
        }
        let session = self.key(day)?.open(&self.context, sealed).ok()?;
        (!has_ended(&session, self.clock.now().timestamp())).then_some(session)
    }
}

/// True if a certificate in `session` has ended by `now`, in seconds since the epoch. Certificates are
/// found by their own encoding, a sequence of some length: that of sessions is internal to rustls.
fn has_ended(session: &[u8], now: i64) -> bool {
    let parts = (0..session.len()).map(|begin| &session[begin..]);
    let mut sequences = parts.filter(|part| matches!(part, [0x30, 0x81 | 0x82, ..]));
    sequences.any(|part| x509::not_after(part).is_some_and(|end| end < now))
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn a_ticket_is_good_for_its_day_and_the_next_under_the_key_of_its_day_alone() {
        let clock = Clock::system();
        let day = i64::from(LIFETIME_SECONDS);
        // No midnight comes while this runs.
        clock.advance(TimeDelta::seconds(day - clock.now().timestamp().rem_euclid(day)));
        let tickets = Tickets::new(&MasterKey::from_bytes(&[7; 32]), &clock, Vec::new());
        let session = b"session".to_vec();
        let first = tickets.encrypt(&session).unwrap();
        assert_eq!(tickets.decrypt(&first), Some(session.clone()));

        clock.advance(TimeDelta::days(1));
        let second = tickets.encrypt(&session).unwrap();
        assert_eq!(tickets.decrypt(&first), Some(session.clone()));
        let of_another_day = [&second[..DAY_BYTES], &first[DAY_BYTES..]].concat();
        assert_eq!(tickets.decrypt(&of_another_day), None);

        clock.advance(TimeDelta::days(1));
        assert_eq!(tickets.decrypt(&first), None);
        assert_eq!(tickets.decrypt(&second), Some(session));
    }

    fn certificate(last_year: i32) -> CertificateDer<'static> {
        let mut parameters = rcgen::CertificateParams::default();
        parameters.not_after = rcgen::date_time_ymd(last_year, 1, 1);
        let key = rcgen::KeyPair::generate().unwrap();
        parameters.self_signed(&key).unwrap().der().clone()
    }

    #[test]
    fn a_session_ends_with_the_first_of_its_certificates() {
        let (leaf, above) = (certificate(2030), certificate(2040));
        let session = [&[3, 4, 0x30, 0x82][..], &above[..], &[0, 0x30], &leaf[..], &[0]].concat();
        let end = 1_893_456_000;
        assert!(!has_ended(&session, end) && has_ended(&session, end + 1));
        assert!(!has_ended(&[3, 4, 0x30, 0x82], i64::MAX), "no certificate");
    }
}
