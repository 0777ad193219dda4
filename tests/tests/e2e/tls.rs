//! TLS as clients and operators see it: versions, cipher suites, tickets, certificates.

mod key_exchange;

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Datelike as _, TimeDelta, Utc};
use http::Method;
use rampart_core::platform::clock::Clock;
use rampart_tests::certificate::CERTIFICATE;
use rampart_tests::deadline::until;
use rampart_tests::edge::{Edge, Setup};
use rampart_tests::wire::Wire;
use rustls::client::{Resumption, Tls12Resumption};
use rustls::{CipherSuite, ClientConfig, HandshakeKind, ProtocolVersion};
use serde_json::json;

const REQUEST: &[u8] = b"GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n";

fn now() -> DateTime<Utc> {
    Clock::system().now()
}

fn client() -> Arc<ClientConfig> {
    CERTIFICATE.client(&["http/1.1"]).into()
}

/// A client that speaks this version alone.
fn speaking(version: &'static rustls::SupportedProtocolVersion) -> Arc<ClientConfig> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CERTIFICATE.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_protocol_versions(&[version]).unwrap();
    builder.with_root_certificates(roots).with_no_client_auth().into()
}

#[tokio::test]
async fn a_ticket_of_one_edge_is_good_at_another() {
    let edge = Edge::start().await;
    let beside = edge.beside().await;
    for client in [client(), speaking(&rustls::version::TLS12)] {
        let mut kinds = Vec::new();
        for address in [edge.address, beside.address] {
            let mut wire = Wire::try_open_as(address, &client).await.unwrap();
            // A ticket comes with the first answer.
            wire.exchange(REQUEST).await.unwrap().assert_status(404);
            kinds.push(wire.tls().handshake_kind().unwrap());
        }
        assert_eq!(kinds, [HandshakeKind::Full, HandshakeKind::Resumed]);
    }
    let stranger = Edge::with(|setup| {
        setup.set("keys.master", "//////////////////////////////////////////8=");
    });
    let (client, stranger) = (client(), stranger.await);
    let mut wire = Wire::try_open_as(edge.address, &client).await.unwrap();
    wire.exchange(REQUEST).await.unwrap();
    let wire = Wire::try_open_as(stranger.address, &client).await.unwrap();
    assert_eq!(wire.tls().handshake_kind(), Some(HandshakeKind::Full), "another master key");
}

#[tokio::test]
async fn versions_and_cipher_suites_are_those_of_the_configuration() {
    let suites = "TLS_CHACHA20_POLY1305_SHA256, TLS_AES_256_GCM_SHA384";
    let edge = Edge::with(|setup| {
        setup.set("edge.tls.min_version", "1.3").set("edge.tls.ciphers", suites);
    })
    .await;
    let wire = Wire::open(edge.address).await;
    assert_eq!(wire.tls().protocol_version(), Some(ProtocolVersion::TLSv1_3));
    let suite = wire.tls().negotiated_cipher_suite().unwrap().suite();
    assert_eq!(suite, CipherSuite::TLS13_CHACHA20_POLY1305_SHA256, "the server's choice");
    let old = speaking(&rustls::version::TLS12);
    assert!(Wire::try_open_as(edge.address, &old).await.is_err());
    let shared = Edge::shared().await;
    let wire = Wire::try_open_as(shared.address, &old).await.unwrap();
    assert_eq!(wire.tls().protocol_version(), Some(ProtocolVersion::TLSv1_2));
}

#[tokio::test]
async fn an_unknown_cipher_suite_is_named() {
    let edge = Edge::shared().await;
    let mut setup = edge.setup();
    setup.unset("edge.upgrade_socket").set("edge.tls.ciphers", "TLS_NULL_WITH_NULL_NULL");
    let process = setup.spawn();
    assert_eq!(process.ended().await.code(), Some(2));
    let said = process.err().join("\n");
    assert!(
        said.contains("edge.tls.ciphers") && said.contains("TLS_NULL_WITH_NULL_NULL"),
        "{said}"
    );
    assert!(said.contains("TLS_AES_256_GCM_SHA384"), "the known ones: {said}");
}

#[tokio::test]
async fn pages_tell_browsers_to_stay_with_https() {
    let edge = Edge::shared().await;
    let partner = edge.partner("strict").await;
    let header = "strict-transport-security";
    let page = partner.anonymous(Method::GET, "/docs").send().await;
    assert_eq!(page.assert_status(200).header(header), Some("max-age=31536000"));
    assert_eq!(partner.get("/api/v1/prices").await.header(header), None);
}

/// Writes a certificate that ends in so many days, and its key.
fn ends_in(setup: &Setup, [cert, key_file]: [&str; 2], days: i64) {
    let end = now() + TimeDelta::days(days);
    let day = |date: DateTime<Utc>| {
        let (month, day) = (date.month().try_into().unwrap(), date.day().try_into().unwrap());
        rcgen::date_time_ymd(date.year(), month, day)
    };
    let mut parameters = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    parameters.not_before = day(end - TimeDelta::days(90));
    parameters.not_after = day(end);
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = parameters.self_signed(&key).unwrap();
    fs::write(setup.folder().join(key_file), key.serialize_pem()).unwrap();
    fs::write(setup.folder().join(cert), certificate.pem()).unwrap();
}

#[tokio::test]
async fn the_end_of_a_certificate_is_foretold() {
    for (days, warned) in [(60, None), (5, Some("expires in ")), (-1, Some("has expired"))] {
        let edge = Edge::with(|setup| ends_in(setup, ["cert.pem", "key.pem"], days)).await;
        let ready = edge.ops("/readyz").await.assert_status(200).json();
        let warnings = ready["warnings"].as_array().unwrap();
        assert_eq!(warnings.len(), usize::from(warned.is_some()), "{ready}");
        let doctor = edge.setup().run("doctor");
        doctor.ended().await;
        let told = doctor.out().join("\n");
        if let Some(warned) = warned {
            let warning = warnings[0].as_str().unwrap();
            assert!(warning.contains(warned), "{ready}");
            assert!(told.contains(&format!("warning certificate: {warning}\n")), "{told}");
        } else {
            assert!(told.contains("ok      certificate: chain and key fit\n"), "{told}");
        }
        let text = edge.ops("/metrics").await.text().to_owned();
        let line = text.lines().find(|line| {
            line.starts_with("rampart_certificate_expiry_timestamp_seconds{")
                && line.contains("cert.pem")
        });
        let end: i64 = line.unwrap().rsplit(' ').next().unwrap().parse().unwrap();
        let expected = (now() + TimeDelta::days(days)).timestamp();
        assert!((expected - 2 * 86_400..=expected).contains(&end), "{end}");
    }
}

#[tokio::test]
async fn the_end_of_a_private_listeners_certificate_is_foretold_too() {
    let edge = Edge::with(|setup| {
        for (section, days) in [("admin", 5), ("connectors", 60)] {
            let files = [format!("{section}.pem"), format!("{section}-key.pem")];
            ends_in(setup, [&files[0], &files[1]], days);
            let [cert, key] = files.map(|file| setup.folder().join(file).display().to_string());
            setup.set(&format!("{section}.tls.cert"), cert);
            setup.set(&format!("{section}.tls.key"), key);
        }
    })
    .await;
    let ready = edge.ops("/readyz").await.assert_status(200).json();
    let warnings = ready["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 1, "{ready}");
    let warning = warnings[0].as_str().unwrap();
    assert!(warning.contains("admin.pem") && warning.contains("expires in "), "{warning}");
    let text = edge.ops("/metrics").await.text().to_owned();
    for file in ["cert.pem", "admin.pem", "connectors.pem"] {
        let shown = text.lines().any(|line| {
            line.starts_with("rampart_certificate_expiry_timestamp_seconds{") && line.contains(file)
        });
        assert!(shown, "{file}: {text}");
    }
}

/// An authority, its certificate as PEM, and a client whose certificate it has signed.
struct Authority {
    certificate: rcgen::Certificate,
    key: rcgen::KeyPair,
    parameters: rcgen::CertificateParams,
}

impl Authority {
    fn make() -> Self {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut parameters = rcgen::CertificateParams::default();
        parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let certificate = parameters.self_signed(&key).unwrap();
        Self { certificate, key, parameters }
    }

    /// Has an edge check clients' certificates against this authority.
    fn trusted_by(&self, setup: &mut Setup, file: &str) {
        let file = setup.folder().join(file);
        fs::write(&file, self.certificate.pem()).unwrap();
        setup.set("edge.tls.client_ca", file.display().to_string());
    }

    /// A TLS client with a certificate for this name.
    fn client(&self, name: &str) -> Arc<ClientConfig> {
        self.client_speaking(name, rustls::DEFAULT_VERSIONS)
    }

    /// The same, which speaks these versions alone.
    fn client_speaking(
        &self,
        name: &str,
        versions: &[&'static rustls::SupportedProtocolVersion],
    ) -> Arc<ClientConfig> {
        self.client_until(name, versions, now() + TimeDelta::days(365))
    }

    /// The same, whose certificate ends at that time.
    fn client_until(
        &self,
        name: &str,
        versions: &[&'static rustls::SupportedProtocolVersion],
        end: DateTime<Utc>,
    ) -> Arc<ClientConfig> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CERTIFICATE.der().clone()).unwrap();
        let key = rcgen::KeyPair::generate().unwrap();
        let mut parameters = rcgen::CertificateParams::default();
        let seconds = u64::try_from(end.timestamp()).unwrap();
        parameters.not_after = rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds);
        parameters.distinguished_name = rcgen::DistinguishedName::new();
        parameters.distinguished_name.push(rcgen::DnType::OrganizationName, "Acme");
        parameters.distinguished_name.push(rcgen::DnType::CommonName, name);
        let issuer = rcgen::Issuer::from_params(&self.parameters, &self.key);
        let certificate = parameters.signed_by(&key, &issuer).unwrap();
        let private = rustls::pki_types::PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider);
        let builder = builder.with_protocol_versions(versions).unwrap();
        let builder = builder.with_root_certificates(roots);
        builder.with_client_auth_cert(vec![certificate.der().clone()], private).unwrap().into()
    }
}

/// The handshake with which a client came to its answer; `None` for one that was refused.
async fn handshake(edge: &Edge, client: &Arc<ClientConfig>) -> Option<HandshakeKind> {
    // In TLS 1.3 the client is done before the server looks at its certificate.
    let mut wire = Wire::try_open_as(edge.address, client).await.ok()?;
    wire.exchange(REQUEST).await?.assert_status(404);
    wire.tls().handshake_kind()
}

#[tokio::test]
async fn a_session_is_resumed_under_the_same_authorities_alone() {
    let (authority, another) = (Authority::make(), Authority::make());
    let edge = Edge::with(|setup| authority.trusted_by(setup, "clients.pem")).await;
    let mut setup = edge.setup();
    authority.trusted_by(&mut setup, "copy.pem");
    let same = Edge::of(setup.clone()).await;
    another.trusted_by(&mut setup, "other.pem");
    let other = Edge::of(setup.clone()).await;
    setup.unset("edge.tls.client_ca");
    let none = Edge::of(setup).await;
    let (full, resumed) = (Some(HandshakeKind::Full), Some(HandshakeKind::Resumed));
    for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
        for (next, expected) in [(&same, resumed), (&none, full), (&other, None)] {
            let client = authority.client_speaking("acme", &[version]);
            assert_eq!(handshake(&edge, &client).await, full);
            assert_eq!(handshake(next, &client).await, expected, "{:?}", version.version);
        }
    }
}

#[tokio::test]
async fn a_session_is_resumed_no_longer_than_its_certificate_is_valid() {
    let authority = Authority::make();
    let edge = Edge::with(|setup| authority.trusted_by(setup, "clients.pem")).await;
    let end = now() + TimeDelta::seconds(8);
    let clients = [&rustls::version::TLS13, &rustls::version::TLS12]
        .map(|version| authority.client_until("acme", &[version], end));
    for client in &clients {
        assert_eq!(handshake(&edge, client).await, Some(HandshakeKind::Full));
    }
    for client in &clients {
        until("the certificate is refused", Duration::from_secs(60), async || {
            handshake(&edge, client).await.is_none().then_some(())
        })
        .await;
    }
}

/// Anybody who has seen the first flight of a resumed session could send it again.
#[tokio::test]
async fn no_early_data_is_taken() {
    let edge = Edge::shared().await;
    let mut client = CERTIFICATE.client(&["http/1.1"]);
    client.enable_early_data = true;
    let client = Arc::new(client);
    for kind in [HandshakeKind::Full, HandshakeKind::Resumed] {
        let mut wire = Wire::try_open_as(edge.address, &client).await.unwrap();
        wire.exchange(REQUEST).await.unwrap().assert_status(404);
        assert_eq!(wire.tls().handshake_kind(), Some(kind));
        assert!(!wire.tls().is_early_data_accepted());
    }
}

#[tokio::test]
async fn a_session_is_not_resumed_by_its_id() {
    let edge = Edge::shared().await;
    let mut client = ClientConfig::clone(&speaking(&rustls::version::TLS12));
    let sessions = Resumption::in_memory_sessions(8);
    client.resumption = sessions.tls12_resumption(Tls12Resumption::SessionIdOnly);
    let client = Arc::new(client);
    for _ in 0..2 {
        assert_eq!(handshake(&edge, &client).await, Some(HandshakeKind::Full));
    }
}

#[tokio::test]
async fn a_pinned_subject_is_needed_with_every_credential() {
    let (authority, stranger) = (Authority::make(), Authority::make());
    let edge = Edge::with(|setup| authority.trusted_by(setup, "clients.pem")).await;
    let partner = edge.partner("pinned").await;
    let token = partner.authenticated().await;
    partner.get("/api/v1/prices").await.assert_status(200);
    let path = "/admin/v1/partners/pinned";
    let pin = json!({"certificateSubject": "O=Acme, CN=acme"});
    edge.admin(Method::PATCH, path, pin).await.assert_status(200);
    let (ours, another) = (authority.client("acme"), authority.client("other"));
    for caller in [&partner, &token] {
        let (name, value) = caller.credential();
        let request = format!("GET /api/v1/prices HTTP/1.1\r\nHost: a\r\n{name}: {value}\r\n\r\n");
        for (client, status) in [(&ours, 200), (&another, 400), (&client(), 400)] {
            // The second connection resumes the first one's session.
            for _ in 0..2 {
                let mut wire = Wire::try_open_as(edge.address, client).await.unwrap();
                wire.exchange(request.as_bytes()).await.unwrap().assert_status(status);
            }
        }
    }
    let foreign = handshake(&edge, &stranger.client("acme")).await;
    assert_eq!(foreign, None, "an unknown authority");
    let key = json!({"certificateSubject": "O=Acme, CN=other"});
    let issued = edge.admin(Method::POST, &format!("{path}/api-keys"), key).await;
    let issued = issued.assert_status(201).json()["apiKey"].as_str().unwrap().to_owned();
    edge.admin(Method::PATCH, path, json!({"certificateSubject": ""})).await.assert_status(200);
    let request = format!("GET /api/v1/prices HTTP/1.1\r\nHost: a\r\nx-api-key: {issued}\r\n\r\n");
    for (client, status) in [(&ours, 400), (&another, 200)] {
        let mut wire = Wire::try_open_as(edge.address, client).await.unwrap();
        wire.exchange(request.as_bytes()).await.unwrap().assert_status(status);
    }
}
