//! OCSP responses in handshakes, from a responder that the certificate names.

mod verification;

use std::process::Command;
use std::sync::{Arc, Mutex};

use rampart_core::platform::clock::Clock;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::edge::{Edge, Folder, Setup};
use rampart_tests::ocsp_responder::{Authority, Issued, OcspResponder, Statement};
use rampart_tests::wire::Wire;
use rcgen::ExtendedKeyUsagePurpose;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

const REQUEST: &[u8] = b"GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n";

fn now() -> i64 {
    Clock::system().now().timestamp()
}

/// An authority, its responder, and a certificate that names it.
struct Pki {
    authority: Arc<Authority>,
    responder: OcspResponder,
    leaf: Issued,
}

impl Pki {
    async fn start() -> Self {
        let (authority, responder) =
            (Authority::make("Test authority"), OcspResponder::start().await);
        let leaf = authority.issue(responder.url());
        Self { authority: Arc::new(authority), responder, leaf }
    }

    /// Has the responder say this, signed by the authority.
    fn say(&self, statement: impl Fn() -> Statement + Send + Sync + 'static) {
        let authority = Arc::clone(&self.authority);
        let answer = move |request: &[u8]| (200, statement().sign(request, &authority.signer()));
        self.responder.answer(answer);
    }

    async fn edge(&self, change: impl FnOnce(&mut Setup)) -> Edge {
        Edge::with(|setup| {
            self.leaf.write(setup.folder(), &[&self.authority]);
            change(setup);
        })
        .await
    }

    /// The response that a new connection to the edge gets; empty without one.
    async fn stapled(&self, edge: &Edge) -> Vec<u8> {
        let (client, verifier) = recording(self.authority.der());
        let mut wire = Wire::try_open_as(edge.address, &client).await.unwrap();
        wire.exchange(REQUEST).await.unwrap().assert_status(404);
        verifier.response.lock().unwrap().clone()
    }

    async fn until_stapled(&self, edge: &Edge) -> Vec<u8> {
        until("a response is stapled", SOON, async || {
            Some(self.stapled(edge).await).filter(|response| !response.is_empty())
        })
        .await
    }

    async fn until_unstapled(&self, edge: &Edge) {
        until("no response is stapled", SOON, async || {
            self.stapled(edge).await.is_empty().then_some(())
        })
        .await;
    }
}

/// Verifies as rustls does, and keeps the response that came with the certificate.
#[derive(Debug)]
struct Recording {
    inner: Arc<WebPkiServerVerifier>,
    response: Mutex<Vec<u8>>,
}

impl ServerCertVerifier for Recording {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        *self.response.lock().unwrap() = response.to_vec();
        self.inner.verify_server_cert(leaf, chain, name, response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, leaf, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, leaf, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// A client that trusts `root`, and what it was shown.
fn recording(root: &CertificateDer<'static>) -> (Arc<ClientConfig>, Arc<Recording>) {
    let mut roots = RootCertStore::empty();
    roots.add(root.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let inner = inner.build().unwrap();
    let verifier = Arc::new(Recording { inner, response: Mutex::default() });
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().unwrap().dangerous();
    let builder = builder.with_custom_certificate_verifier(Arc::clone(&verifier) as _);
    (Arc::new(builder.with_no_client_auth()), verifier)
}

/// The value of a metric by the beginning of its line.
async fn metric(edge: &Edge, series: &str) -> Option<f64> {
    let metrics = edge.ops("/metrics").await.text().to_owned();
    let line = metrics.lines().find(|line| line.starts_with(series))?;
    line.rsplit(' ').next()?.parse().ok()
}

async fn warnings(edge: &Edge) -> String {
    edge.ops("/readyz").await.assert_status(200).json()["warnings"].to_string()
}

/// Runs a command of openssl; its success and its output.
fn openssl(folder: &Folder, command: &str) -> (bool, String) {
    let script = format!("openssl {command} 2>&1");
    let output = Command::new("sh").args(["-c", &script]).current_dir(folder.path()).output();
    let output = output.unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[tokio::test]
async fn a_response_is_stapled_that_openssl_made_and_accepts() {
    let (pki, folder) = (Pki::start().await, Folder::make());
    pki.authority.write(folder.path());
    pki.leaf.write(folder.path(), &[&pki.authority]);
    let (ok, serial) = openssl(&folder, "x509 -in cert.pem -noout -serial");
    assert!(ok, "{serial}");
    let serial = serial.trim().trim_start_matches("serial=");
    let index = format!("V\t401231235959Z\t\t{serial}\tunknown\t/CN=localhost\n");
    std::fs::write(folder.path().join("index.txt"), index).unwrap();
    let folder = Arc::new(folder);
    let beside = Arc::clone(&folder);
    pki.responder.answer(move |request| {
        std::fs::write(beside.path().join("request.der"), request).unwrap();
        let made = "ocsp -index index.txt -CA ca.pem -rsigner ca.pem -rkey ca.key \
                    -reqin request.der -respout response.der -ndays 1";
        let (ok, said) = openssl(&beside, made);
        assert!(ok, "{said}");
        (200, std::fs::read(beside.path().join("response.der")).unwrap())
    });
    let edge = pki.edge(|_| {}).await;
    let stapled = pki.until_stapled(&edge).await;
    std::fs::write(folder.path().join("stapled.der"), stapled).unwrap();
    let judged = "ocsp -respin stapled.der -CAfile ca.pem -issuer ca.pem -cert cert.pem";
    let (ok, said) = openssl(&folder, judged);
    assert!(ok && said.contains("Response verify OK") && said.contains("cert.pem: good"), "{said}");
    for version in ["-tls1_2", "-tls1_3"] {
        let address = edge.address;
        let asked = format!(
            "s_client -connect {address} -servername localhost -status -CAfile ca.pem \
             -verify_return_error {version} </dev/null"
        );
        let (ok, said) = openssl(&folder, &asked);
        assert!(ok && said.contains("OCSP Response Status: successful (0x0)"), "{said}");
        assert!(said.contains("Cert Status: good"), "{said}");
    }
}

#[tokio::test]
async fn a_responder_of_the_authoritys_signs_for_it() {
    let pki = Pki::start().await;
    let delegate = pki.authority.responder(ExtendedKeyUsagePurpose::OcspSigning, [2020, 2090]);
    let answer = move |request: &[u8]| {
        (200, Statement::good(now(), 3_600).sign(request, &delegate.signer()))
    };
    pki.responder.answer(answer);
    let edge = pki.edge(|_| {}).await;
    pki.until_stapled(&edge).await;
    let file = edge.setup().folder().join("cert.pem").display().to_string();
    let series = |name: &str| format!("rampart_ocsp_{name}_timestamp_seconds{{file=\"{file}\"}}");
    let begin = metric(&edge, &series("this_update")).await.unwrap();
    let end = metric(&edge, &series("next_update")).await.unwrap();
    assert!((end - begin - 3_600.0).abs() < 0.5, "{begin} {end}");
    assert_eq!(metric(&edge, "rampart_ocsp_fetches_total{outcome=\"ok\"}").await, Some(1.0));
    assert_eq!(warnings(&edge).await, "[]");
}

#[tokio::test]
async fn what_is_not_good_is_not_stapled_and_handshakes_go_on() {
    let stranger = Arc::new(Authority::make("Test authority"));
    let forger = Arc::clone(&stranger);
    type Answer = Box<dyn Fn(&Pki)>;
    let cases: [(&str, Answer); 5] = [
        ("refused", Box::new(|pki| pki.responder.answer(|_| (302, Vec::new())))),
        ("malformed", Box::new(|pki| pki.responder.answer(|_| (200, vec![b'a'; 1 << 20])))),
        ("revoked", Box::new(|pki| pki.say(|| Statement::revoked(now(), 3_600)))),
        ("expired", Box::new(|pki| pki.say(|| Statement::good(now() - 3_600, 3_000)))),
        (
            "forged",
            Box::new(move |pki| {
                let forger = Arc::clone(&forger);
                pki.responder.answer(move |request| {
                    (200, Statement::good(now(), 3_600).sign(request, &forger.signer()))
                });
            }),
        ),
    ];
    let pki = Pki::start().await;
    for (outcome, answer) in cases {
        answer(&pki);
        let edge = pki.edge(|_| {}).await;
        let series = format!("rampart_ocsp_fetches_total{{outcome=\"{outcome}\"}}");
        until(outcome, SOON, async || metric(&edge, &series).await.filter(|count| *count >= 1.0))
            .await;
        assert_eq!(pki.stapled(&edge).await, b"", "{outcome}");
        let warnings = warnings(&edge).await;
        assert!(warnings.contains("no OCSP response is stapled"), "{outcome}: {warnings}");
    }
}

#[tokio::test]
async fn a_response_is_renewed_at_half_of_its_validity_and_gone_at_its_end() {
    let pki = Pki::start().await;
    pki.say(|| Statement::good(now(), 16));
    let edge = pki.edge(|_| {}).await;
    let first = pki.until_stapled(&edge).await;
    let asked = pki.responder.asked();
    until("it is renewed", SOON, async || {
        let next = pki.stapled(&edge).await;
        assert_ne!(next, b"", "there is one at any time");
        (next != first).then_some(())
    })
    .await;
    assert_eq!(pki.responder.asked(), asked + 1, "once, at half of it");

    // Away, the last one serves until its end; the responder is asked again and again.
    pki.responder.answer(|_| (503, Vec::new()));
    until("the responder is missed", SOON, async || {
        (pki.responder.asked() > asked + 1).then_some(())
    })
    .await;
    assert_ne!(pki.stapled(&edge).await, b"");
    assert_eq!(warnings(&edge).await, "[]");
    pki.until_unstapled(&edge).await;
    assert!(warnings(&edge).await.contains("the responder refuses to answer"));
    pki.say(|| Statement::good(now(), 3_600));
    pki.until_stapled(&edge).await;

    // Reading the same files again costs no handshake its response.
    edge.process.signal(nix::sys::signal::Signal::SIGHUP);
    assert_ne!(pki.stapled(&edge).await, b"");
}

#[tokio::test]
async fn a_revocation_ends_the_response_from_before() {
    let pki = Pki::start().await;
    // Half of it is over in 5 seconds, all of it only after the wait for the end below.
    pki.say(|| Statement::good(now() - 60, 130));
    let edge = pki.edge(|_| {}).await;
    pki.until_stapled(&edge).await;
    pki.say(|| Statement::revoked(now(), 3_600));
    pki.until_unstapled(&edge).await;
    assert!(warnings(&edge).await.contains("the certificate is revoked"));
}

#[tokio::test]
async fn nothing_is_fetched_without_an_issuer_or_against_the_configuration() {
    let pki = Pki::start().await;
    pki.say(|| Statement::good(now(), 3_600));
    let alone = Edge::with(|setup| pki.leaf.write(setup.folder(), &[])).await;
    until("the lack is told", SOON, async || {
        warnings(&alone).await.contains("lacks the certificate of its issuer").then_some(())
    })
    .await;
    assert_eq!(pki.stapled(&alone).await, b"");
    let off = pki.edge(|setup| _ = setup.set("edge.tls.ocsp", "false")).await;
    let on = pki.edge(|_| {}).await;
    pki.until_stapled(&on).await;
    assert_eq!(pki.stapled(&off).await, b"");
    assert_eq!(pki.responder.asked(), 1);
}
