//! OCSP responses for the certificates that this edge serves (RFC 6960), fetched from the responders
//! that the certificates name, so that handshakes can carry them.

mod response;

use std::fmt;
use std::time::Duration;

use reqwest::header;
use x509_cert::der::Encode as _;
use x509_cert::der::asn1::{Null, ObjectIdentifier, OctetString};
use x509_cert::serial_number::SerialNumber;
use x509_cert::spki::AlgorithmIdentifierOwned;
use x509_ocsp::{CertId, OcspRequest, Request, TbsRequest};
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::oid_registry::{OID_PKIX_ACCESS_DESCRIPTOR_OCSP, Oid};
use x509_parser::prelude::{FromDer as _, X509Certificate};

pub use self::response::OcspResponse;
use crate::platform::http_client;

/// Longest exchange with a responder, from the name lookup to the last byte.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest response, in bytes; with a responder's certificate it has 2 to 6 KB.
const RESPONSE_BYTES_MAX: usize = 32 * 1024;
/// The hash in requests: every responder knows it (RFC 5019, section 2.1.1), and it names a
/// certificate without proving anything.
const SHA1: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.14.3.2.26");

/// The reason why there is no response that could be stapled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OcspFailure {
    /// The chain lacks the certificate of the leaf's issuer.
    NoIssuer,
    /// No connection, or no answer within [`REQUEST_TIMEOUT`].
    Unreachable,
    /// Another HTTP status than 200, or an OCSP status other than successful.
    Refused,
    /// Not an OCSP response, or one that is too long.
    Malformed,
    /// Signed neither by the issuer nor by a responder that it has certified.
    Forged,
    /// About another certificate.
    Mismatched,
    /// The certificate is revoked.
    Revoked,
    /// The responder does not know the certificate.
    Unknown,
    /// Not valid yet, or no longer.
    Expired,
}

impl OcspFailure {
    /// The label in metrics.
    pub const fn label(self) -> &'static str {
        match self {
            Self::NoIssuer => "no_issuer",
            Self::Unreachable => "unreachable",
            Self::Refused => "refused",
            Self::Malformed => "malformed",
            Self::Forged => "forged",
            Self::Mismatched => "mismatched",
            Self::Revoked => "revoked",
            Self::Unknown => "unknown",
            Self::Expired => "expired",
        }
    }

    /// True for a genuine statement against the certificate: an earlier response must not hide it.
    pub const fn is_verdict(self) -> bool {
        matches!(self, Self::Revoked | Self::Unknown)
    }
}

impl fmt::Display for OcspFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoIssuer => "its chain lacks the certificate of its issuer",
            Self::Unreachable => "the responder does not answer",
            Self::Refused => "the responder refuses to answer",
            Self::Malformed => "the responder's answer is no OCSP response",
            Self::Forged => {
                "the response is not signed by the issuer or a responder of the issuer's"
            }
            Self::Mismatched => "the response is about another certificate",
            Self::Revoked => "the certificate is revoked",
            Self::Unknown => "the responder does not know the certificate",
            Self::Expired => "the response is not valid now",
        })
    }
}

/// The question to a responder about one certificate.
#[derive(Debug)]
pub struct OcspQuery {
    url: String,
    request: Vec<u8>,
    id: CertId,
    /// DER of the issuer's certificate.
    issuer: Vec<u8>,
}

impl OcspQuery {
    /// The query for the first certificate of a chain in DER; `None` when it names no responder that
    /// is asked over plain HTTP, as responses are signed.
    ///
    /// # Errors
    /// [`OcspFailure::NoIssuer`], and [`OcspFailure::Malformed`] for a certificate that cannot be
    /// named in a request.
    pub fn for_chain<C: AsRef<[u8]>>(chain: &[C]) -> Result<Option<Self>, OcspFailure> {
        let parsed = |der| X509Certificate::from_der(der).ok().map(|(_, certificate)| certificate);
        let Some((leaf, above)) = chain.split_first() else { return Ok(None) };
        let Some(leaf) = parsed(leaf.as_ref()) else { return Ok(None) };
        let Some(url) = responder(&leaf) else { return Ok(None) };
        let mut above = above.iter().filter_map(|der| parsed(der.as_ref()));
        let issuer = above.find(|one| one.subject().as_raw() == leaf.issuer().as_raw());
        let issuer = issuer.ok_or(OcspFailure::NoIssuer)?;
        let id = cert_id(&leaf, &issuer).map_err(|_| OcspFailure::Malformed)?;
        let request = OcspRequest {
            tbs_request: TbsRequest {
                request_list: vec![Request {
                    req_cert: id.clone(),
                    single_request_extensions: None,
                }],
                ..TbsRequest::default()
            },
            optional_signature: None,
        };
        let request = request.to_der().map_err(|_| OcspFailure::Malformed)?;
        Ok(Some(Self { url, request, id, issuer: issuer.as_raw().to_vec() }))
    }

    /// Address of the responder.
    pub fn url(&self) -> &str {
        &self.url
    }
}

/// The first responder over HTTP of a certificate's authority information access.
fn responder(leaf: &X509Certificate<'_>) -> Option<String> {
    let access = leaf.extensions().iter().find_map(|one| match one.parsed_extension() {
        ParsedExtension::AuthorityInfoAccess(access) => Some(access),
        _ => None,
    })?;
    let is_ocsp = |method: &Oid<'_>| *method == OID_PKIX_ACCESS_DESCRIPTOR_OCSP;
    access.iter().filter(|one| is_ocsp(&one.access_method)).find_map(|one| {
        let GeneralName::URI(uri) = one.access_location else { return None };
        uri.starts_with("http://").then(|| uri.to_owned())
    })
}

fn cert_id(
    leaf: &X509Certificate<'_>,
    issuer: &X509Certificate<'_>,
) -> x509_cert::der::Result<CertId> {
    let hash = |bytes| {
        let digest = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, bytes);
        OctetString::new(digest.as_ref())
    };
    Ok(CertId {
        hash_algorithm: AlgorithmIdentifierOwned { oid: SHA1, parameters: Some(Null.into()) },
        issuer_name_hash: hash(issuer.subject().as_raw())?,
        issuer_key_hash: hash(&issuer.public_key().subject_public_key.data)?,
        serial_number: SerialNumber::new(leaf.raw_serial())?,
    })
}

/// The HTTP client for responders.
#[derive(Clone, Debug)]
pub struct OcspClient(reqwest::Client);

impl OcspClient {
    /// A client that follows no redirect and uses no proxy.
    ///
    /// # Errors
    /// One sentence, when the operating system's resolver cannot be used.
    pub fn new() -> Result<Self, String> {
        let client = http_client::builder()
            .timeout(REQUEST_TIMEOUT)
            // The next request is days away.
            .pool_max_idle_per_host(0)
            .build();
        client.map(Self).map_err(|e| format!("the client for OCSP responders cannot be made: {e}"))
    }

    /// Fetches a response and verifies it as of `now`, in seconds since the epoch.
    ///
    /// # Errors
    /// The reason why there is none that could be stapled.
    pub async fn fetch(&self, query: &OcspQuery, now: i64) -> Result<OcspResponse, OcspFailure> {
        let request = self.0.post(&query.url).body(query.request.clone());
        let request = request.header(header::CONTENT_TYPE, "application/ocsp-request");
        let request = request.header(header::ACCEPT, "application/ocsp-response");
        let mut answer = request.send().await.map_err(|_| OcspFailure::Unreachable)?;
        if answer.status() != http::StatusCode::OK {
            return Err(OcspFailure::Refused);
        }
        let mut der = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(|_| OcspFailure::Unreachable)? {
            if der.len() + chunk.len() > RESPONSE_BYTES_MAX {
                return Err(OcspFailure::Malformed);
            }
            der.extend_from_slice(&chunk);
        }
        OcspResponse::verify(der, query, now)
    }
}
