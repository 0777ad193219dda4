use super::*;

/// RFC 6979, A.2.5.
pub(crate) const P256_PEM: &str = "\
-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEYP7UuiVanTHJYet0xjVtaMBJuJI7
Yfps5mliLmDyn7Z5A/4QCLi8maQa6elWKLxk8vGyDC1+n1F3o8KU1EYimQ==
-----END PUBLIC KEY-----
";

/// 2048 bits, made for these tests.
pub(crate) const RSA_PEM: &str = "\
-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAp9Ozxp2Qyg/qpDm0mC5+
gpT+vvkn2YeVie2avVQWirC3nINfClxowgfY1HVCiq9cNAMnmMkTlX7UveO/oAlR
X7g0JWlPrbL++NHEoG22aEUR65pxETjnaffgfs+NiR7L/Y8wrjt/qZ5WENiyCfaK
mdTqN2HTFfHMMh+9LITQW1+ii2ajTL1SpaiCMgmZqrnxocAwYCoEeCy165BvvPBf
BFhivKOHn2cxWsaKARipU+rGlQ6TnXfFJQ1Ewm4m4HukyWBm+e98FAqIr+/XK5vn
+VlQ4O+QkEcZMoutJkEhN5foA5khZtDceOqU8BM1xK0+ILPxW5rskIpDp0T2bhOy
rQIDAQAB
-----END PUBLIC KEY-----
";

/// 1024 bits: too short.
const SHORT_RSA_PEM: &str = "\
-----BEGIN PUBLIC KEY-----
MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDQhQypZZBrt2l+XOMnxzOay4rm
F2qNvg32q9XX+SxPuqmD/7rOvenBP/cR2Lvw08Acj3U+9r3+S9Nc5J3/Th7PPNDH
rEVVaxOZqDYzb19cblXZuF3mm4uNx/t/uRmfR0fupwp5+E7WyplK8pOq1Tk2a3l3
GRYFtqiA3VegtUVmNwIDAQAB
-----END PUBLIC KEY-----
";

/// RFC 8032, 7.1, test 2.
pub(crate) fn ed25519_pem() -> String {
    let key = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";
    let info = hex::decode(format!("302a300506032b6570032100{key}")).expect("it is hex");
    pem(&info)
}

fn pem(info: &[u8]) -> String {
    let text = STANDARD.encode(info);
    format!("-----BEGIN PUBLIC KEY-----\n{text}\n-----END PUBLIC KEY-----\n")
}

fn problem(algorithm: Algorithm, text: &str) -> String {
    let key = VerificationKey::parse(algorithm, text);
    key.expect_err("it is no key of this algorithm").to_string()
}

#[test]
fn every_kind_of_key_is_read() {
    for (algorithm, text) in [
        (Algorithm::HmacSha256, STANDARD.encode([7; 16])),
        (Algorithm::HmacSha512, STANDARD.encode([7; 1024])),
        (Algorithm::Ed25519, ed25519_pem()),
        (Algorithm::EcdsaP256Sha256, P256_PEM.to_owned()),
        (Algorithm::RsaPkcs1Sha256, RSA_PEM.to_owned()),
        (Algorithm::RsaPssSha256, RSA_PEM.to_owned()),
    ] {
        let key = VerificationKey::parse(algorithm, &text).expect("it is a key");
        assert_eq!(key.algorithm(), algorithm);
    }
}

#[test]
fn a_key_of_another_algorithm_is_refused() {
    assert!(problem(Algorithm::Ed25519, P256_PEM).contains("not of this algorithm"));
    assert!(problem(Algorithm::EcdsaP256Sha256, RSA_PEM).contains("not of this algorithm"));
    assert!(problem(Algorithm::RsaPssSha256, &ed25519_pem()).contains("not of this algorithm"));
    assert!(problem(Algorithm::HmacSha256, P256_PEM).contains("base64"));
}

#[test]
fn weak_keys_are_refused() {
    assert!(problem(Algorithm::RsaPkcs1Sha256, SHORT_RSA_PEM).contains("2048 to 8192 bits"));
    assert!(problem(Algorithm::HmacSha256, &STANDARD.encode([7; 15])).contains("16 to 1024"));
    assert!(problem(Algorithm::HmacSha256, "").contains("16 to 1024"));
}

#[test]
fn what_is_cut_or_has_more_behind_it_is_refused() {
    let text = ed25519_pem();
    let whole = SubjectPublicKeyInfoDer::from_pem_slice(text.as_bytes()).expect("it is PEM");
    for cut in 0..whole.len() {
        problem(Algorithm::Ed25519, &pem(&whole[..cut]));
    }
    problem(Algorithm::Ed25519, &pem(&[&whole, &[0][..]].concat()));
    problem(Algorithm::Ed25519, "");
    problem(Algorithm::Ed25519, &" ".repeat(KEY_TEXT_BYTES_MAX + 1));
}

#[test]
fn a_key_cannot_be_printed() {
    let key = VerificationKey::parse(Algorithm::HmacSha256, &STANDARD.encode([0x41; 32]));
    let bound = BoundKey { key: key.expect("it is a key"), not_before: None, not_after: None };
    let printed = format!("{:?}", KeyRing::new([("k".to_owned(), bound)]));
    assert!(printed.contains("HmacSha256") && !printed.contains("65"), "{printed}");
    assert!(!printed.contains("AAAA") && !printed.contains("QUFB"), "{printed}");
}
