//! The rules for a response, one by one, against the client of edges.

use rampart_api::operate::ocsp::{OcspClient, OcspFailure, OcspQuery, OcspResponse};
use rampart_tests::ocsp_responder::{Authority, OcspResponder, Signer, Statement};
use rampart_tests::port::free;
use rcgen::ExtendedKeyUsagePurpose::{OcspSigning, ServerAuth};
use x509_ocsp::CertStatus;

use super::{Pki, now};

/// Fetches what `statement` and `signer` make.
async fn fetch(
    pki: &Pki,
    statement: Statement,
    signer: &Signer<'_>,
) -> Result<OcspResponse, OcspFailure> {
    judge(pki, statement, signer, |_| {}).await
}

/// The same after `change` has changed its bytes.
async fn judge(
    pki: &Pki,
    statement: Statement,
    signer: &Signer<'_>,
    change: impl FnOnce(&mut Vec<u8>),
) -> Result<OcspResponse, OcspFailure> {
    let client = OcspClient::new().unwrap();
    let chain = [pki.leaf.der(), pki.authority.der()];
    let query = OcspQuery::for_chain(&chain).unwrap().unwrap();
    // The responder cannot borrow the signer: it is asked first, then says what was signed.
    let (sender, request) = std::sync::mpsc::sync_channel(1);
    pki.responder.answer(move |bytes| {
        sender.send(bytes.to_vec()).unwrap();
        (500, Vec::new())
    });
    assert_eq!(client.fetch(&query, now()).await, Err(OcspFailure::Refused));
    let mut response = statement.sign(&request.recv().unwrap(), signer);
    change(&mut response);
    pki.responder.answer(move |_| (200, response.clone()));
    client.fetch(&query, now()).await
}

#[tokio::test]
async fn a_response_is_valid_from_its_begin_to_its_end() {
    let pki = Pki::start().await;
    let signer = pki.authority.signer();
    let (now, good) = (now(), Statement::good(now(), 3_600));
    let from = |begin| Statement { this_update: now + begin, ..good };
    let to = |end| Statement { next_update: end, this_update: now - 50_000, ..good };
    for statement in [good, from(60), to(Some(now + 60)), to(None)] {
        let response = fetch(&pki, statement, &signer).await.unwrap();
        assert_eq!(response.this_update(), statement.this_update);
        let end = statement.next_update.unwrap_or(statement.this_update + 86_400);
        assert_eq!(response.next_update(), end);
        assert!(response.is_current(end - 3) && !response.is_current(end - 2));
    }
    let older = Statement { this_update: now - 90_000, ..to(None) };
    for statement in [from(600), to(Some(now)), to(Some(now - 60)), older] {
        let judged = fetch(&pki, statement, &signer).await;
        assert_eq!(judged, Err(OcspFailure::Expired), "{statement:?}");
    }
}

#[tokio::test]
async fn a_response_speaks_of_the_certificate_and_well_of_it() {
    let pki = Pki::start().await;
    let (signer, good) = (pki.authority.signer(), Statement::good(now(), 3_600));
    for (statement, failure) in [
        (Statement { about_another: true, ..good }, OcspFailure::Mismatched),
        (Statement::revoked(now(), 3_600), OcspFailure::Revoked),
        (Statement { status: CertStatus::unknown(), ..good }, OcspFailure::Unknown),
    ] {
        assert_eq!(fetch(&pki, statement, &signer).await, Err(failure));
    }
}

#[tokio::test]
async fn only_the_issuer_and_those_that_it_has_certified_for_it_sign() {
    let pki = Pki::start().await;
    let (authority, good) = (&pki.authority, Statement::good(now(), 3_600));
    let delegate = authority.responder(OcspSigning, [2020, 2090]);
    fetch(&pki, good, &authority.signer()).await.unwrap();
    fetch(&pki, good, &delegate.signer()).await.unwrap();
    let stranger = Authority::make("Test authority");
    for forger in [
        // By name alone it is the same.
        stranger.signer(),
        stranger.responder(OcspSigning, [2020, 2090]).signer(),
        authority.responder(ServerAuth, [2020, 2090]).signer(),
        authority.responder(OcspSigning, [2020, 2021]).signer(),
        authority.responder(OcspSigning, [2089, 2090]).signer(),
        // The certificate that is served may not vouch for itself.
        pki.leaf.signer(),
    ] {
        assert_eq!(fetch(&pki, good, &forger).await, Err(OcspFailure::Forged));
    }
}

#[tokio::test]
async fn a_changed_byte_is_never_accepted() {
    let pki = Pki::start().await;
    let (signer, good) = (pki.authority.signer(), Statement::good(now(), 3_600));
    let length = fetch(&pki, good, &signer).await.unwrap().der().len();
    for place in 0..length {
        // Signatures differ in length by a byte or two: a place may be just behind one.
        let alter = |bytes: &mut Vec<u8>| match bytes.get_mut(place) {
            Some(byte) => *byte ^= 1,
            None => bytes.push(0),
        };
        let judged = judge(&pki, good, &signer, alter).await;
        assert!(judged.is_err(), "{place} of {length}");
    }
    let longer = judge(&pki, good, &signer, |bytes| bytes.push(0)).await;
    assert_eq!(longer, Err(OcspFailure::Malformed));
}

#[tokio::test]
async fn a_responder_that_is_away_is_told_from_one_that_refuses() {
    let pki = Pki::start().await;
    let client = OcspClient::new().unwrap();
    let away = format!("http://{}/", free());
    let leaf = pki.authority.issue(&away);
    let query = OcspQuery::for_chain(&[leaf.der(), pki.authority.der()]).unwrap().unwrap();
    assert_eq!(client.fetch(&query, now()).await, Err(OcspFailure::Unreachable));
    let query = OcspQuery::for_chain(&[pki.leaf.der(), pki.authority.der()]).unwrap().unwrap();
    // OCSP's own way to say that it cannot answer: tryLater.
    pki.responder.answer(|_| (200, vec![0x30, 3, 0x0a, 1, 3]));
    assert_eq!(client.fetch(&query, now()).await, Err(OcspFailure::Refused));
}

#[tokio::test]
async fn a_responder_is_asked_over_plain_http_alone() {
    let authority = Authority::make("Test authority");
    for url in ["https://ocsp.example/", "ldap://ocsp.example/"] {
        let leaf = authority.issue(url);
        assert!(OcspQuery::for_chain(&[leaf.der(), authority.der()]).unwrap().is_none());
    }
    let responder = OcspResponder::start().await;
    let leaf = authority.issue(responder.url());
    let stranger = Authority::make("Another authority");
    for chain in [&[leaf.der()][..], &[leaf.der(), stranger.der()]] {
        let lacking = OcspQuery::for_chain(chain).unwrap_err();
        assert_eq!(lacking, OcspFailure::NoIssuer);
    }
}
