//! Pingora's TLS settings neither choose certificates nor have ticket keys: which certificate a
//! connection gets, and how a changed file comes into use.

mod acme;
mod key_exchange;
mod parameters;
mod stapling;
mod tickets;
pub(super) mod x509;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use pingora_core::listeners::tls::Acceptor;
use rampart_core::Core;
use rampart_core::platform::counted::counted;
use rustls::client::verify_server_name;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{
    ClientHello, NoServerSessionStorage, ParsedCertificate, ResolvesServerCert, WantsServerCert,
};
use rustls::sign::CertifiedKey;
use rustls::{ConfigBuilder, ServerConfig};

use self::acme::Challenges;
pub(crate) use self::stapling::StapleStatus;
use self::stapling::StapleStatuses;
use self::tickets::Tickets;
use crate::config::{KeyPair, Tls};
use crate::startup_error::{Context as _, StartupError};

/// Pause between two looks at the files.
const RELOAD_INTERVAL: Duration = Duration::from_secs(1);
/// Time before a certificate's end from which it is warned of.
const WARNING_SECONDS: i64 = 14 * DAY_SECONDS;
const DAY_SECONDS: i64 = 24 * 60 * 60;

/// Time of the last change and length of a file; `None` for one that is missing.
type Stamp = Option<(SystemTime, u64)>;

/// The certificates in use. The first one serves whoever names no host that another one is for.
#[derive(Debug)]
pub(crate) struct Certificates {
    pairs: Vec<KeyPair>,
    /// Change times and lengths of the files before the first read.
    stamps: Vec<Stamp>,
    /// Those of the files, and behind them the one that edges share, once there is one.
    live: ArcSwap<Vec<Arc<CertifiedKey>>>,
    challenges: Challenges,
    staples: StapleStatuses,
}

impl Certificates {
    /// Reads certificates and keys from their files.
    ///
    /// # Errors
    /// One sentence: which file is missing, is not PEM, or holds a key of another certificate.
    pub(crate) fn load(pairs: Vec<KeyPair>) -> Result<Arc<Self>, StartupError> {
        let stamps = stamps(&pairs);
        let live = ArcSwap::from_pointee(read_all(&pairs)?);
        let (challenges, staples) = Default::default();
        Ok(Arc::new(Self { pairs, stamps, live, challenges, staples }))
    }

    /// Looks at the files every second and takes what changed. What cannot be used is named in
    /// one line, the certificates before it stay, and the files are looked at until they can:
    /// they are rarely replaced all at once.
    pub(crate) async fn watch(self: Arc<Self>) {
        let mut seen = self.stamps.clone();
        let mut named = None;
        let mut interval = tokio::time::interval(RELOAD_INTERVAL);
        loop {
            interval.tick().await;
            let now = self.stamps_now().await;
            if now == seen {
                continue;
            }
            match self.take() {
                Ok(()) => (seen, named) = (now, None),
                Err(bad) if named.as_ref() != Some(&bad.to_string()) => {
                    log_unchanged(&bad);
                    named = Some(bad.to_string());
                }
                Err(_) => {}
            }
        }
    }

    /// Takes files that changed, and the certificate that edges share whenever there is
    /// another one; with `ocsp`, staples responses to what is served.
    pub(crate) async fn renew(self: Arc<Self>, core: Arc<Core>, ocsp: bool) {
        let stapling = async {
            if ocsp {
                stapling::staple(&self, &core).await;
            }
        };
        let acme = self.follow_acme(core.acme.subscribe());
        tokio::join!(Arc::clone(&self).watch(), acme, stapling);
    }

    /// Reads all files again, whether they have changed or not.
    pub(crate) fn reload(&self) {
        if let Err(bad) = self.take() {
            log_unchanged(&bad);
        }
    }

    /// The file of each certificate, `acme` for the one that edges share, and the end of its validity
    /// in seconds since the epoch.
    pub(crate) fn expiries(&self) -> Vec<(String, i64)> {
        let expiry = |(file, certified): (String, Arc<CertifiedKey>)| {
            Some((file, x509::not_after(certified.cert.first()?)?))
        };
        self.served().into_iter().filter_map(expiry).collect()
    }

    /// Sentences about certificates that have expired at `now`, in seconds since the epoch, or will
    /// within 14 days.
    pub(crate) fn expiry_warnings(&self, now: i64) -> Vec<String> {
        let warning = |(file, end): (String, i64)| match end - now {
            left if left <= 0 => Some(format!("the certificate in '{file}' has expired")),
            left if left < WARNING_SECONDS => {
                let days = counted(left / DAY_SECONDS, "day", "days");
                Some(format!("the certificate in '{file}' expires in {days}"))
            }
            _ => None,
        };
        self.expiries().into_iter().filter_map(warning).collect()
    }

    /// The state of stapling for every certificate that names an OCSP responder.
    pub(crate) fn staples(&self) -> Arc<Vec<StapleStatus>> {
        self.staples.load_full()
    }

    /// Served certificates by file; `acme` names the one that edges share.
    fn served(&self) -> Vec<(String, Arc<CertifiedKey>)> {
        let files = self.pairs.iter().map(|pair| pair.cert.display().to_string());
        files.chain(["acme".to_owned()]).zip(self.live.load().iter().cloned()).collect()
    }

    /// Staples a response to the certificate with this leaf, or none.
    fn attach(&self, leaf: &CertificateDer<'_>, response: Option<&[u8]>) {
        let stapled = |one: &Arc<CertifiedKey>| stapling::stapled(one, leaf, response);
        self.live.rcu(|live| live.iter().map(stapled).collect::<Vec<_>>());
    }

    fn take(&self) -> Result<(), StartupError> {
        let read = read_all(&self.pairs)?;
        self.live.rcu(|live| {
            let (files, shared) = live.split_at(read.len());
            let read = files.iter().zip(&read).map(|(earlier, next)| stapling::kept(earlier, next));
            read.chain(shared.iter().cloned()).collect::<Vec<_>>()
        });
        tracing::info!("certificates reloaded");
        Ok(())
    }

    async fn stamps_now(self: &Arc<Self>) -> Vec<Stamp> {
        let certificates = Arc::clone(self);
        let looking = tokio::task::spawn_blocking(move || stamps(&certificates.pairs));
        // Only the end of the process keeps it from looking.
        looking.await.unwrap_or_default()
    }
}

fn log_unchanged(bad: &StartupError) {
    tracing::error!("certificates not changed, the old ones stay: {bad}");
}

fn stamps(pairs: &[KeyPair]) -> Vec<Stamp> {
    let stamp = |path: &PathBuf| {
        let about = std::fs::metadata(path).ok()?;
        Some((about.modified().ok()?, about.len()))
    };
    pairs.iter().flat_map(|pair| [&pair.cert, &pair.key]).map(stamp).collect()
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        if hello.alpn().is_some_and(|mut names| names.any(|name| name == acme::PROTOCOL)) {
            return self.challenges.load().get(hello.server_name()?).cloned();
        }
        let live = self.live.load();
        let first = live.first()?;
        let named = hello
            .server_name()
            .filter(|_| live.len() > 1)
            .and_then(|name| ServerName::try_from(name).ok())
            .and_then(|name| live.iter().find(|certified| serves(certified, &name)));
        Some(Arc::clone(named.unwrap_or(first)))
    }
}

/// The certificate's own alternative names cover `name`, wildcards included.
fn serves(certified: &CertifiedKey, name: &ServerName<'_>) -> bool {
    certified
        .end_entity_cert()
        .and_then(ParsedCertificate::try_from)
        .is_ok_and(|parsed| verify_server_name(&parsed, name).is_ok())
}

fn read_all(pairs: &[KeyPair]) -> Result<Vec<Arc<CertifiedKey>>, StartupError> {
    pairs.iter().map(|pair| read(pair).map(Arc::new)).collect()
}

fn read(pair: &KeyPair) -> Result<CertifiedKey, StartupError> {
    let unusable =
        |what: &str, path: &Path| format!("the {what} in '{}' cannot be used", path.display());
    let chain = read_chain(&pair.cert).context(unusable("certificate", &pair.cert))?;
    let key =
        PrivateKeyDer::from_pem_file(&pair.key).context(unusable("private key", &pair.key))?;
    let certified = CertifiedKey::from_der(chain, key, &ring::default_provider());
    certified.context(unusable("certificate with its key", &pair.cert))
}

/// The certificates in a PEM file.
///
/// # Errors
/// The reason for which there are none.
pub(super) fn read_chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    let chain = chain.map_err(|e| e.to_string())?;
    if chain.is_empty() { Err("it holds no certificate in PEM".to_owned()) } else { Ok(chain) }
}

/// The parameters of TLS handshakes: versions and cipher suites as configured, in our order, HTTP/2
/// before HTTP/1.1, no early data, resumption by tickets alone: nothing is kept for a client that does
/// not come back, and no session outlives its client's certificate.
///
/// # Errors
/// One sentence: which setting cannot be used.
pub(crate) fn acceptor(
    certificates: Arc<Certificates>,
    tls: &Tls,
    core: &Arc<Core>,
) -> Result<Acceptor, StartupError> {
    let (builder, authorities) = builder(tls)?;
    let mut config = builder.with_cert_resolver(certificates);
    config.ignore_client_order = true;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    if core.settings.acme.is_configured() {
        config.alpn_protocols.push(acme::PROTOCOL.to_vec());
    }
    config.ticketer = Arc::new(Tickets::new(&core.keys, &core.clock, authorities));
    config.session_storage = Arc::new(NoServerSessionStorage {});
    // A client that comes back has one, and gets a new one then.
    config.send_tls13_tickets = 1;
    Ok(Acceptor::from_server_config(Arc::new(config)))
}

/// A configuration that lacks only its own certificates, and the authorities that clients' are checked
/// against.
pub(super) fn builder(
    tls: &Tls,
) -> Result<
    (ConfigBuilder<ServerConfig, WantsServerCert>, Vec<CertificateDer<'static>>),
    StartupError,
> {
    let provider = parameters::provider(tls)?;
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&parameters::versions(tls))
        .context("TLS cannot be set up")?;
    Ok(match &tls.client_ca {
        Some(path) => {
            let (verifier, authorities) = parameters::client_verifier(path, provider)?;
            (builder.with_client_cert_verifier(verifier), authorities)
        }
        None => (builder.with_no_client_auth(), Vec::new()),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    /// A folder that is removed at the end of the test.
    struct Folder(PathBuf);

    impl Folder {
        fn new() -> Self {
            let id = rampart_core::platform::clock::Clock::system().uuid().unwrap();
            let folder = std::env::temp_dir().join(format!("rampart-tls-{id}"));
            fs::create_dir(&folder).unwrap();
            Self(folder)
        }

        /// Writes a new certificate for `name` and its key under `file`.
        fn certify(&self, file: &str, name: &str) -> KeyPair {
            let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
            let (cert, key) =
                (self.0.join(format!("{file}.pem")), self.0.join(format!("{file}.key")));
            fs::write(&cert, made.cert.pem()).unwrap();
            fs::write(&key, made.signing_key.serialize_pem()).unwrap();
            KeyPair { cert, key }
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn first(certificates: &Certificates) -> Arc<CertifiedKey> {
        Arc::clone(&certificates.live.load()[0])
    }

    #[test]
    fn a_certificate_serves_the_names_it_holds() {
        let folder = Folder::new();
        let pair = folder.certify("a", "*.shop.example");
        let certificates = Certificates::load(vec![pair]).unwrap();
        let certified = first(&certificates);
        let serves = |name: &str| serves(&certified, &ServerName::try_from(name).unwrap());
        assert!(serves("pay.shop.example"));
        assert!(!serves("shop.example") && !serves("a.pay.shop.example") && !serves("other"));
    }

    #[test]
    fn what_changed_is_taken_and_what_is_unusable_is_not() {
        let folder = Folder::new();
        let pair = folder.certify("a", "one.example");
        let certificates = Certificates::load(vec![pair.clone()]).unwrap();
        let before = first(&certificates);
        folder.certify("a", "two.example");
        certificates.reload();
        let after = first(&certificates);
        assert_ne!(before.cert, after.cert);
        fs::write(&pair.cert, "no certificate").unwrap();
        certificates.reload();
        assert_eq!(first(&certificates).cert, after.cert);
    }

    #[test]
    fn a_missing_file_and_a_wrong_key_are_named() {
        let folder = Folder::new();
        let (one, other) = (folder.certify("a", "a.example"), folder.certify("b", "b.example"));
        let mixed = KeyPair { cert: one.cert.clone(), key: other.key };
        let sentence = Certificates::load(vec![mixed]).unwrap_err().to_string();
        assert!(sentence.contains("a.pem"), "{sentence}");
        let missing = KeyPair { cert: folder.0.join("none.pem"), key: one.key };
        let sentence = Certificates::load(vec![missing]).unwrap_err().to_string();
        assert!(sentence.contains("none.pem"), "{sentence}");
    }
}
