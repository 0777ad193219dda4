//! An authority whose certificates name an OCSP responder on loopback, which says what the test tells
//! it to.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, SigningKey as _,
};
use rustls::pki_types::CertificateDer;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use x509_cert::der::asn1::{BitString, GeneralizedTime, ObjectIdentifier, OctetString};
use x509_cert::der::{Decode as _, Encode as _};
use x509_cert::spki::AlgorithmIdentifierOwned;
use x509_ocsp::{
    BasicOcspResponse, CertStatus, OcspGeneralizedTime, OcspRequest, OcspResponse, ResponderId,
    ResponseData, RevokedInfo, SingleResponse, Version,
};

/// ECDSA with SHA-256, by which every key here signs.
const ECDSA_SHA256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.2");
/// Authority information access (RFC 5280, section 4.2.2.1), and its method for OCSP.
const ACCESS: &[u64] = &[1, 3, 6, 1, 5, 5, 7, 1, 1];
const OCSP_METHOD: &[u8] = &[0x06, 8, 0x2b, 6, 1, 5, 5, 7, 0x30, 1];

/// An issuer of certificates.
pub struct Authority {
    certificate: rcgen::Certificate,
    parameters: CertificateParams,
    key: KeyPair,
}

/// A certificate with its key.
pub struct Issued {
    certificate: rcgen::Certificate,
    key: KeyPair,
}

impl Authority {
    /// A new one of this name.
    pub fn make(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name.push(DnType::CommonName, name);
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = parameters.self_signed(&key).unwrap();
        Self { certificate, parameters, key }
    }

    /// Its certificate.
    pub fn der(&self) -> &CertificateDer<'static> {
        self.certificate.der()
    }

    /// Writes `ca.pem` and `ca.key` into `folder`.
    pub fn write(&self, folder: &Path) {
        std::fs::write(folder.join("ca.pem"), self.certificate.pem()).unwrap();
        std::fs::write(folder.join("ca.key"), self.key.serialize_pem()).unwrap();
    }

    /// A certificate for `localhost` that names this responder.
    pub fn issue(&self, responder: &str) -> Issued {
        let mut parameters = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        parameters.custom_extensions = vec![access(responder)];
        self.sign(&parameters)
    }

    /// A certificate of a responder, for this usage alone, valid in these years.
    pub fn responder(&self, usage: ExtendedKeyUsagePurpose, years: [i32; 2]) -> Issued {
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name.push(DnType::CommonName, "responder");
        parameters.extended_key_usages = vec![usage];
        [parameters.not_before, parameters.not_after] =
            years.map(|year| rcgen::date_time_ymd(year, 1, 1));
        self.sign(&parameters)
    }

    /// The signer of responses in its own name.
    pub fn signer(&self) -> Signer<'_> {
        Signer { key: &self.key, certificates: Vec::new() }
    }

    fn sign(&self, parameters: &CertificateParams) -> Issued {
        let key = KeyPair::generate().unwrap();
        let issuer = Issuer::from_params(&self.parameters, &self.key);
        Issued { certificate: parameters.signed_by(&key, &issuer).unwrap(), key }
    }
}

impl Issued {
    /// The certificate.
    pub fn der(&self) -> &CertificateDer<'static> {
        self.certificate.der()
    }

    /// Writes `cert.pem`, with the certificates of `above` behind it, and `key.pem` into `folder`.
    pub fn write(&self, folder: &Path, above: &[&Authority]) {
        let above: String = above.iter().map(|authority| authority.certificate.pem()).collect();
        std::fs::write(folder.join("key.pem"), self.key.serialize_pem()).unwrap();
        std::fs::write(folder.join("cert.pem"), self.certificate.pem() + &above).unwrap();
    }

    /// The signer of responses with this certificate in them.
    pub fn signer(&self) -> Signer<'_> {
        Signer { key: &self.key, certificates: vec![self.der().clone()] }
    }
}

/// The extension that names a responder of at most 100 bytes.
fn access(responder: &str) -> CustomExtension {
    let tagged = |tag: u8, content: &[u8]| {
        let length = u8::try_from(content.len()).ok().filter(|length| *length < 128).unwrap();
        [&[tag, length], content].concat()
    };
    let description = [OCSP_METHOD, &tagged(0x86, responder.as_bytes())].concat();
    let content = tagged(0x30, &tagged(0x30, &description));
    CustomExtension::from_oid_content(ACCESS, content)
}

/// A key, and the certificates that go with its signatures.
pub struct Signer<'a> {
    key: &'a KeyPair,
    certificates: Vec<CertificateDer<'static>>,
}

/// A statement about the certificate that a request asks about.
#[derive(Clone, Copy, Debug)]
pub struct Statement {
    /// Good, revoked or unknown.
    pub status: CertStatus,
    /// Begin of validity, in seconds since the epoch.
    pub this_update: i64,
    /// End of validity.
    pub next_update: Option<i64>,
    /// Speak of the certificate with the next serial number.
    pub about_another: bool,
}

impl Statement {
    /// The certificate is good for so many seconds from `now` on.
    pub fn good(now: i64, seconds: i64) -> Self {
        let (status, next_update) = (CertStatus::good(), Some(now + seconds));
        Self { status, this_update: now, next_update, about_another: false }
    }

    /// The same, but the certificate is revoked.
    pub fn revoked(now: i64, seconds: i64) -> Self {
        let info = RevokedInfo { revocation_time: time(now), revocation_reason: None };
        Self { status: CertStatus::revoked(info), ..Self::good(now, seconds) }
    }

    /// The response to `request` with this statement.
    pub fn sign(self, request: &[u8], signer: &Signer<'_>) -> Vec<u8> {
        let request = OcspRequest::from_der(request).unwrap();
        let [one] = &*request.tbs_request.request_list else { panic!("one certificate") };
        let mut cert_id = one.req_cert.clone();
        if self.about_another {
            let mut serial = cert_id.serial_number.as_bytes().to_vec();
            *serial.last_mut().unwrap() ^= 1;
            cert_id.serial_number = x509_cert::serial_number::SerialNumber::new(&serial).unwrap();
        }
        let key_hash = OctetString::new([7; 20]).unwrap();
        let data = ResponseData {
            version: Version::V1,
            responder_id: ResponderId::ByKey(key_hash),
            produced_at: time(self.this_update),
            responses: vec![SingleResponse {
                cert_id,
                cert_status: self.status,
                this_update: time(self.this_update),
                next_update: self.next_update.map(time),
                single_extensions: None,
            }],
            response_extensions: None,
        };
        let signature = signer.key.sign(&data.to_der().unwrap()).unwrap();
        let certificates = signer.certificates.iter();
        let certificates: Vec<_> =
            certificates.map(|der| x509_cert::Certificate::from_der(der).unwrap()).collect();
        let basic = BasicOcspResponse {
            tbs_response_data: data,
            signature_algorithm: AlgorithmIdentifierOwned { oid: ECDSA_SHA256, parameters: None },
            signature: BitString::from_bytes(&signature).unwrap(),
            certs: Some(certificates).filter(|all| !all.is_empty()),
        };
        OcspResponse::successful(basic).unwrap().to_der().unwrap()
    }
}

fn time(seconds: i64) -> OcspGeneralizedTime {
    let since = std::time::Duration::from_secs(seconds.try_into().unwrap());
    OcspGeneralizedTime(GeneralizedTime::from_unix_duration(since).unwrap())
}

/// Answers a request with a status and a body.
type Answer = Box<dyn Fn(&[u8]) -> (u16, Vec<u8>) + Send + Sync>;

/// A responder over HTTP.
#[derive(Clone)]
pub struct OcspResponder {
    url: String,
    answer: Arc<Mutex<Answer>>,
    asked: Arc<AtomicU32>,
}

impl OcspResponder {
    /// One that answers everything with 503, until it is told what to say.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/ocsp", listener.local_addr().unwrap());
        let answer: Answer = Box::new(|_| (503, Vec::new()));
        let responder = Self { url, answer: Arc::new(Mutex::new(answer)), asked: Arc::default() };
        let serving = responder.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let serving = serving.clone();
                tokio::spawn(async move { serving.serve(stream).await });
            }
        });
        responder
    }

    /// Its address, as certificates name it.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Answers so from now on.
    pub fn answer(&self, answer: impl Fn(&[u8]) -> (u16, Vec<u8>) + Send + Sync + 'static) {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = Box::new(answer);
    }

    /// The number of requests so far.
    pub fn asked(&self) -> u32 {
        self.asked.load(Ordering::Relaxed)
    }

    /// Answers one request of a client that sends its length.
    async fn serve(&self, stream: TcpStream) -> Option<()> {
        let mut stream = BufReader::new(stream);
        let (mut line, mut length) = (String::new(), None);
        while stream.read_line(&mut line).await.ok()? > 2 {
            let header = line.to_ascii_lowercase();
            if let Some(value) = header.strip_prefix("content-length:") {
                length = value.trim().parse().ok();
            }
            line.clear();
        }
        let mut request = vec![0; length?];
        stream.read_exact(&mut request).await.ok()?;
        self.asked.fetch_add(1, Ordering::Relaxed);
        let (status, body) = self.answer.lock().unwrap_or_else(PoisonError::into_inner)(&request);
        let (length, url) = (body.len(), &self.url);
        let head = format!(
            "HTTP/1.1 {status} -\r\nconnection: close\r\nlocation: {url}\r\n\
             content-length: {length}\r\n\r\n"
        );
        stream.write_all(&[head.as_bytes(), &body].concat()).await.ok()
    }
}
