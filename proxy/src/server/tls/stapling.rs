//! rustls staples the OCSP response that a certificate was given, and fetches none: here each served
//! certificate that names a responder gets one, as long as there is one that is good.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use rampart_api::operate::ocsp::{OcspClient, OcspFailure, OcspQuery, OcspResponse};
use rampart_core::Core;
use rustls::pki_types::CertificateDer;
use rustls::sign::CertifiedKey;
use tokio::task::JoinSet;

use super::Certificates;

/// Pause between two looks at the served certificates and the responses for them.
const INTERVAL: Duration = Duration::from_secs(1);
/// Seconds before the first repetition of a fetch that failed; they double up to [`RETRY_MAX`].
const RETRY_MIN: i64 = 5;
/// Most seconds between a fetch that failed and the next one.
const RETRY_MAX: i64 = 60 * 60;
/// Least seconds between a fetch that succeeded and the next one.
const REFRESH_MIN: i64 = 5;

/// The state of stapling for one certificate that names a responder.
#[derive(Clone, Debug)]
pub(crate) struct StapleStatus {
    /// Its file, or `acme`.
    pub(crate) file: String,
    /// Begin and end of the stapled response's validity, in seconds since the epoch.
    pub(crate) validity: Option<(i64, i64)>,
    /// The failure of the last fetch, if it failed.
    pub(crate) failure: Option<OcspFailure>,
}

/// The last known state of every certificate that names a responder.
pub(super) type StapleStatuses = ArcSwap<Vec<StapleStatus>>;

/// Fetches responses for what `certificates` serve, and staples them; does not end.
pub(super) async fn staple(certificates: &Certificates, core: &Core) {
    let client = match OcspClient::new() {
        Ok(client) => client,
        Err(sentence) => return tracing::error!("no OCSP responses are stapled: {sentence}"),
    };
    let mut staples: Vec<Staple> = Vec::new();
    let mut fetches: JoinSet<(CertificateDer<'static>, Result<OcspResponse, OcspFailure>)> =
        JoinSet::new();
    let mut interval = tokio::time::interval(INTERVAL);
    loop {
        tokio::select! {
            _ = interval.tick() => {}
            Some(fetched) = fetches.join_next() => {
                // A fetch that panicked counts as one that is under way for good.
                let Ok((leaf, result)) = fetched else { continue };
                for staple in staples.iter_mut().filter(|one| one.leaf == leaf) {
                    staple.take(result.clone(), core);
                }
            }
        }
        follow(&mut staples, certificates);
        let now = core.clock.now().timestamp();
        for staple in &mut staples {
            staple.response.take_if(|response| !response.is_current(now));
            certificates.attach(&staple.leaf, staple.response.as_ref().map(OcspResponse::der));
            if let Some(query) = staple.begin(now) {
                let (client, leaf) = (client.clone(), staple.leaf.clone());
                fetches.spawn(async move {
                    let result = client.fetch(&query, now).await;
                    (leaf, result)
                });
            }
        }
        certificates.staples.store(Arc::new(staples.iter().map(Staple::status).collect()));
    }
}

/// Begins with certificates that are new, and forgets those that are served no longer.
fn follow(staples: &mut Vec<Staple>, certificates: &Certificates) {
    let served = certificates.served();
    let is_served = |file: &str, leaf: &CertificateDer<'_>| {
        served.iter().any(|(name, certified)| name == file && certified.cert.first() == Some(leaf))
    };
    staples.retain(|staple| is_served(&staple.file, &staple.leaf));
    for (file, certified) in &served {
        let leaf = certified.cert.first();
        if !staples.iter().any(|staple| staple.file == *file && Some(&staple.leaf) == leaf) {
            staples.extend(Staple::new(file, certified));
        }
    }
}

/// A certificate that names a responder, and the response for it.
struct Staple {
    file: String,
    leaf: CertificateDer<'static>,
    /// The question to the responder, unless the chain does not suffice for one.
    query: Option<Arc<OcspQuery>>,
    response: Option<OcspResponse>,
    failure: Option<OcspFailure>,
    failures: u32,
    /// Time of the next fetch, in seconds since the epoch; `None` while one is under way.
    due: Option<i64>,
}

impl Staple {
    /// `None` for a certificate that names no responder.
    fn new(file: &str, certified: &CertifiedKey) -> Option<Self> {
        let leaf = certified.cert.first()?.clone();
        let query = OcspQuery::for_chain(&certified.cert).transpose()?;
        let failure = query.as_ref().err().copied();
        if let Some(failure) = failure {
            tracing::warn!(file, "no OCSP response is stapled: {failure}");
        }
        let (file, query) = (file.to_owned(), query.ok().map(Arc::new));
        Some(Self { file, leaf, query, response: None, failure, failures: 0, due: Some(0) })
    }

    /// The query, if it is to be sent now.
    fn begin(&mut self, now: i64) -> Option<Arc<OcspQuery>> {
        let query = self.query.clone()?;
        self.due.take_if(|due| *due <= now).map(|_| query)
    }

    /// Takes the end of a fetch. An earlier response stays until it expires, unless the responder
    /// says now that the certificate is not good.
    fn take(&mut self, fetched: Result<OcspResponse, OcspFailure>, core: &Core) {
        let now = core.clock.now().timestamp();
        let (file, url) = (&self.file, self.query.as_ref().map_or("", |query| query.url()));
        let outcome = match fetched {
            Ok(response) => {
                self.due = Some(refresh_at(&response, now));
                (self.response, self.failure, self.failures) = (Some(response), None, 0);
                "ok"
            }
            Err(failure) => {
                tracing::warn!(file, url, "no OCSP response was fetched: {failure}");
                if failure.is_verdict() {
                    self.response = None;
                }
                self.due = Some(now + retry_after(self.failures));
                (self.failure, self.failures) = (Some(failure), self.failures.saturating_add(1));
                failure.label()
            }
        };
        core.metrics.ocsp_fetches.with_label_values(&[outcome]).inc();
    }

    fn status(&self) -> StapleStatus {
        let validity = self.response.as_ref().map(|one| (one.this_update(), one.next_update()));
        StapleStatus { file: self.file.clone(), validity, failure: self.failure }
    }
}

/// Half of the validity; once that has passed, half of what is left.
fn refresh_at(response: &OcspResponse, now: i64) -> i64 {
    let half = response.this_update().midpoint(response.next_update());
    let half = if half > now { half } else { now.midpoint(response.next_update()) };
    half.max(now + REFRESH_MIN)
}

/// Seconds until a fetch that failed after so many others is repeated.
fn retry_after(failures: u32) -> i64 {
    RETRY_MIN.checked_shl(failures.min(16)).map_or(RETRY_MAX, |seconds| seconds.min(RETRY_MAX))
}

/// `certified` with this response, if it is the leaf's; the same where nothing changes.
pub(super) fn stapled(
    certified: &Arc<CertifiedKey>,
    leaf: &CertificateDer<'_>,
    response: Option<&[u8]>,
) -> Arc<CertifiedKey> {
    if certified.cert.first() != Some(leaf) || certified.ocsp.as_deref() == response {
        return Arc::clone(certified);
    }
    let mut other = CertifiedKey::clone(certified);
    other.ocsp = response.map(<[u8]>::to_vec);
    Arc::new(other)
}

/// `next` with the response of `earlier` where both are the same certificate, so that reading it again
/// costs no handshake its response.
pub(super) fn kept(earlier: &CertifiedKey, next: &Arc<CertifiedKey>) -> Arc<CertifiedKey> {
    let again = earlier.cert.first().map(|leaf| stapled(next, leaf, earlier.ocsp.as_deref()));
    again.unwrap_or_else(|| Arc::clone(next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_slow_down_to_once_an_hour() {
        let pauses: Vec<_> = [0, 1, 2, 9, 10, u32::MAX].map(retry_after).into();
        assert_eq!(pauses, [5, 10, 20, 2_560, 3_600, 3_600]);
    }
}
