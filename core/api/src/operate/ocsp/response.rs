//! Verification of a response (RFC 6960, section 3.2).

use x509_cert::der::asn1::AnyRef;
use x509_cert::der::oid::AssociatedOid as _;
use x509_cert::der::{Decode as _, Encode as _, Reader as _, SliceReader};
use x509_ocsp::{BasicOcspResponse, CertId, CertStatus, OcspResponseStatus, SingleResponse};
use x509_parser::asn1_rs::BitString;
use x509_parser::prelude::{AlgorithmIdentifier, FromDer as _, X509Certificate};
use x509_parser::time::ASN1Time;
use x509_parser::verify::verify_signature;

use super::{OcspFailure, OcspQuery};

/// Seconds by which a responder's clock may be ahead of ours.
const SKEW_MAX: i64 = 5 * 60;
/// Seconds that a response is valid which does not say it: browsers take it for as long.
const DEFAULT_VALIDITY: i64 = 24 * 60 * 60;
/// Seconds before the end of its validity from which a response is not sent: it has to arrive.
const TRANSIT_MAX: i64 = 2;

/// A response which says that a certificate is good, signed by whom it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OcspResponse {
    der: Vec<u8>,
    this_update: i64,
    next_update: i64,
}

impl OcspResponse {
    /// Verifies the answer to `query` as of `now`, in seconds since the epoch.
    ///
    /// # Errors
    /// The reason why it must not be stapled.
    pub(super) fn verify(der: Vec<u8>, query: &OcspQuery, now: i64) -> Result<Self, OcspFailure> {
        let malformed = |_| OcspFailure::Malformed;
        let outer = x509_ocsp::OcspResponse::from_der(&der).map_err(malformed)?;
        if outer.response_status != OcspResponseStatus::Successful {
            return Err(OcspFailure::Refused);
        }
        let bytes = outer.response_bytes.ok_or(OcspFailure::Malformed)?;
        if bytes.response_type != BasicOcspResponse::OID {
            return Err(OcspFailure::Malformed);
        }
        let bytes = bytes.response.as_bytes();
        let basic = BasicOcspResponse::from_der(bytes).map_err(malformed)?;
        verify_signer(&basic, signed_part(bytes).map_err(malformed)?, query, now)?;
        let responses = &basic.tbs_response_data.responses;
        let one = responses.iter().find(|one| names(&one.cert_id, &query.id));
        let one = one.ok_or(OcspFailure::Mismatched)?;
        match one.cert_status {
            CertStatus::Good(_) => {}
            CertStatus::Revoked(_) => return Err(OcspFailure::Revoked),
            CertStatus::Unknown(_) => return Err(OcspFailure::Unknown),
        }
        let (this_update, next_update) = validity(one);
        let response = Self { der, this_update, next_update };
        if this_update > now + SKEW_MAX || !response.is_current(now) {
            return Err(OcspFailure::Expired);
        }
        Ok(response)
    }

    /// The bytes that a handshake carries.
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// Begin of validity, in seconds since the epoch.
    pub const fn this_update(&self) -> i64 {
        self.this_update
    }

    /// End of validity, in seconds since the epoch.
    pub const fn next_update(&self) -> i64 {
        self.next_update
    }

    /// True as long as a client that gets it can take it for valid.
    pub const fn is_current(&self, now: i64) -> bool {
        now + TRANSIT_MAX < self.next_update
    }
}

/// The bytes that the signature is over, as they came.
fn signed_part(basic: &[u8]) -> x509_cert::der::Result<&[u8]> {
    SliceReader::new(AnyRef::from_der(basic)?.value())?.tlv_bytes()
}

/// The signer is the issuer, or a responder whose certificate the issuer has signed for this use and
/// that came with the response (RFC 6960, section 4.2.2.2).
fn verify_signer(
    basic: &BasicOcspResponse,
    signed: &[u8],
    query: &OcspQuery,
    now: i64,
) -> Result<(), OcspFailure> {
    let algorithm = basic.signature_algorithm.to_der().map_err(|_| OcspFailure::Malformed)?;
    let (_, algorithm) =
        AlgorithmIdentifier::from_der(&algorithm).map_err(|_| OcspFailure::Malformed)?;
    let signature = basic.signature.as_bytes().ok_or(OcspFailure::Malformed)?;
    let signature = BitString::new(0, signature);
    let signed_by = |signer: &X509Certificate<'_>| {
        verify_signature(signer.public_key(), &algorithm, &signature, signed).is_ok()
    };
    let (_, issuer) =
        X509Certificate::from_der(&query.issuer).map_err(|_| OcspFailure::Malformed)?;
    let certified = |certificate: &x509_cert::Certificate| {
        let der = certificate.to_der().unwrap_or_default();
        X509Certificate::from_der(&der)
            .is_ok_and(|(_, one)| signed_by(&one) && may_sign_for(&issuer, &one, now))
    };
    if signed_by(&issuer) || basic.certs.iter().flatten().any(certified) {
        return Ok(());
    }
    Err(OcspFailure::Forged)
}

/// True if the issuer has certified this responder, and its certificate is valid now.
fn may_sign_for(issuer: &X509Certificate<'_>, responder: &X509Certificate<'_>, now: i64) -> bool {
    let usage = responder.extended_key_usage().ok().flatten();
    let is_valid =
        ASN1Time::from_timestamp(now).is_ok_and(|now| responder.validity().is_valid_at(now));
    is_valid
        && usage.is_some_and(|usage| usage.value.ocsp_signing)
        && responder.issuer().as_raw() == issuer.subject().as_raw()
        && responder.verify_signature(Some(issuer.public_key())).is_ok()
}

/// Compares all but the parameters of the hash, which are null or left out.
fn names(one: &CertId, other: &CertId) -> bool {
    one.hash_algorithm.oid == other.hash_algorithm.oid
        && one.issuer_name_hash == other.issuer_name_hash
        && one.issuer_key_hash == other.issuer_key_hash
        && one.serial_number == other.serial_number
}

/// Begin and end of validity, in seconds since the epoch.
fn validity(response: &SingleResponse) -> (i64, i64) {
    let seconds = |time: x509_ocsp::OcspGeneralizedTime| {
        i64::try_from(time.0.to_unix_duration().as_secs()).unwrap_or(i64::MAX)
    };
    let begin = seconds(response.this_update);
    (begin, response.next_update.map_or(begin.saturating_add(DEFAULT_VALIDITY), seconds))
}
