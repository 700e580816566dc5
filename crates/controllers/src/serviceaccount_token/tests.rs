//! Table tests of the pure functions.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rcgen::{KeyPair, PublicKeyData as _};
use serde_json::{Value, json};
use steersman_base::Meta;
use steersman_informer::{Change, End};
use steersman_model::core::{TokenData, TokenSecretView};
use steersman_model::{Encoded, View};

use super::plan::{Fill, Lacks, base64};
use super::reference::{Reference, of_deleted};
use super::signer::{KeyError, Signer};
use super::{der, map};

fn account() -> Meta {
    Meta { name: "robot".into(), namespace: "ns".into(), uid: "u1".into(), ..Meta::default() }
}

fn p256() -> KeyPair {
    KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap()
}

fn signer() -> Signer {
    Signer::from_pem(p256().serialize_pem().as_bytes()).unwrap()
}

fn pem(tag: &str, der: &[u8]) -> String {
    format!("-----BEGIN {tag}-----\n{}\n-----END {tag}-----\n", base64(der))
}

fn part(token: &str, at: usize) -> Value {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(token.split('.').nth(at).unwrap()).unwrap()).unwrap()
}

fn secret(metadata: &Value, data: &Value) -> TokenSecretView {
    let body = json!({ "metadata": metadata, "data": data, "type": "kubernetes.io/service-account-token" });
    TokenSecretView::decode(Encoded::Json(body.to_string().as_bytes())).unwrap()
}

#[test]
fn a_token_says_what_upstreams_say() {
    let pair = p256();
    let signer = Signer::from_pem(pair.serialize_pem().as_bytes()).unwrap();
    let token = signer.legacy_token(&account(), "robot-token").unwrap();
    let header = part(&token, 0);
    let id = header["kid"].as_str().unwrap();
    assert_eq!(URL_SAFE_NO_PAD.decode(id).unwrap().len(), 32, "a SHA-256");
    assert_eq!(header, json!({ "alg": "ES256", "kid": id }));
    assert_eq!(
        part(&token, 1),
        json!({
            "iss": "kubernetes/serviceaccount",
            "sub": "system:serviceaccount:ns:robot",
            "kubernetes.io/serviceaccount/namespace": "ns",
            "kubernetes.io/serviceaccount/secret.name": "robot-token",
            "kubernetes.io/serviceaccount/service-account.name": "robot",
            "kubernetes.io/serviceaccount/service-account.uid": "u1",
        })
    );
    assert!(!format!("{signer:?}").contains("PRIVATE"), "{signer:?}");
}

/// Whether the token verifies with the public key.
fn is_signed_by(token: &str, pair: &KeyPair, algorithm: jsonwebtoken::Algorithm) -> bool {
    let raw = pair.der_bytes();
    let key = match algorithm {
        jsonwebtoken::Algorithm::RS256 => jsonwebtoken::DecodingKey::from_rsa_der(raw),
        _ => jsonwebtoken::DecodingKey::from_ec_der(raw),
    };
    let mut validation = jsonwebtoken::Validation::new(algorithm);
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    jsonwebtoken::decode::<Value>(token, &key, &validation).is_ok()
}

#[test]
fn keys_of_every_kind_and_envelope_sign() {
    use jsonwebtoken::Algorithm::{ES256, ES384, RS256};
    let check = |pem: &str, pair: &KeyPair, algorithm| {
        let signer = Signer::from_pem(pem.as_bytes()).unwrap_or_else(|error| panic!("{algorithm:?}: {error}"));
        let token = signer.legacy_token(&account(), "s").unwrap();
        assert!(is_signed_by(&token, pair, algorithm), "{algorithm:?}");
        assert!(!is_signed_by(&token, &p256(), ES256) || algorithm != ES256, "another key's");
    };
    let rsa = KeyPair::generate_for(&rcgen::PKCS_RSA_SHA256).unwrap();
    check(&rsa.serialize_pem(), &rsa, RS256);
    let bare = der::out_of_pkcs8(rsa.serialized_der()).unwrap();
    check(&pem("RSA PRIVATE KEY", bare), &rsa, RS256);
    for (algorithm, kind, envelope) in
        [(ES256, &rcgen::PKCS_ECDSA_P256_SHA256, der::P256), (ES384, &rcgen::PKCS_ECDSA_P384_SHA384, der::P384)]
    {
        let pair = KeyPair::generate_for(kind).unwrap();
        check(&pair.serialize_pem(), &pair, algorithm);
        let sec1 = der::out_of_pkcs8(pair.serialized_der()).unwrap();
        // As `openssl ecparam -genkey` writes it.
        let parameters = pem("EC PARAMETERS", &envelope[11..]);
        check(&format!("{parameters}{}", pem("EC PRIVATE KEY", sec1)), &pair, algorithm);
        assert_eq!(der::out_of_pkcs8(&der::into_pkcs8(envelope, sec1)), Some(sec1));
    }
}

#[test]
fn what_is_no_key_is_refused_with_a_reason() {
    let check = |pem: &str, want: &str| {
        let error = Signer::from_pem(pem.as_bytes()).unwrap_err();
        assert!(error.to_string().contains(want), "{error}");
    };
    check("", "no private key");
    check("not PEM", "no private key");
    check(&pem("PRIVATE KEY", b"nonsense"), "neither an RSA key");
    check(&pem("CERTIFICATE", b"nonsense"), "no private key");
    let ed25519 = KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    check(&ed25519.serialize_pem(), "not with");
    assert!(matches!(Signer::from_pem(ed25519.serialize_pem().as_bytes()), Err(KeyError::Unsupported(_))));
    for cut in [&[][..], &[0x30], &[0x30, 0x05, 0x02], &[0x30, 0x84, 0xff, 0xff, 0xff, 0xff], &[0x30, 0x89]] {
        assert_eq!(der::out_of_pkcs8(cut), None, "{cut:?}");
    }
}

#[test]
fn a_secret_lacks_what_is_not_there_or_not_right() {
    let check = |root_ca: Option<&str>, data: TokenData, want: [bool; 3]| {
        let fill = Fill { signer: signer(), root_ca: root_ca.map(|text| base64(text.as_bytes())) };
        let [ca_certificate, namespace, token] = want;
        assert_eq!(fill.lacks(&data), Lacks { ca_certificate, namespace, token }, "{root_ca:?} {data:?}");
    };
    let full = || TokenData { ca_certificate: base64(b"CA").into(), has_namespace: true, has_token: true };
    check(Some("CA"), full(), [false, false, false]);
    check(Some("CA"), TokenData::default(), [true, true, true]);
    check(Some("NEW"), full(), [true, false, false]);
    check(None, TokenData::default(), [false, true, true]);
    check(Some(""), full(), [false, false, false]);
    check(Some("CA"), TokenData { has_token: false, ..full() }, [false, false, true]);
}

#[test]
fn a_secret_is_filled_once_and_keeps_what_it_has() {
    let fill = Fill { signer: signer(), root_ca: Some(base64(b"CA")) };
    let mut secret = json!({
        "metadata": { "name": "s", "annotations": { "mine": "stays" } },
        "data": { "extra": "AAEC" }, "immutable": false,
    });
    assert!(fill.fill(&mut secret, &account()).unwrap());
    assert_eq!(secret["data"]["ca.crt"], base64(b"CA"));
    assert_eq!(secret["data"]["namespace"], base64(b"ns"));
    assert_eq!(secret["data"]["extra"], "AAEC");
    let want = json!({
        "mine": "stays", "kubernetes.io/service-account.name": "robot", "kubernetes.io/service-account.uid": "u1",
    });
    assert_eq!(secret["metadata"]["annotations"], want);
    let filled = secret.clone();
    assert!(!fill.fill(&mut secret, &account()).unwrap());
    assert_eq!(secret, filled);

    // Another certificate does not replace the token.
    let renewed = Fill { root_ca: Some(base64(b"NEW")), ..fill };
    assert!(renewed.fill(&mut secret, &account()).unwrap());
    assert_eq!(
        (&secret["data"]["token"], &secret["data"]["ca.crt"]),
        (&filled["data"]["token"], &json!(base64(b"NEW")))
    );

    let mut bare = json!({ "metadata": { "name": "s" } });
    assert!(renewed.fill(&mut bare, &account()).unwrap(), "neither data nor annotations are there");
}

#[test]
fn a_secret_is_about_the_account_it_names() {
    let check = |annotations: Value, want: Option<&str>| {
        let secret = secret(&json!({ "name": "s", "namespace": "ns", "annotations": annotations }), &json!({}));
        let got = map::account_of(&secret).map(|key| key.to_string());
        assert_eq!(got.as_deref(), want, "{annotations}");
    };
    check(json!({ "kubernetes.io/service-account.name": "robot" }), Some("ns/robot"));
    check(json!({ "kubernetes.io/service-account.name": "" }), None);
    check(json!({}), None);
}

#[test]
fn a_token_goes_with_the_account_that_it_was_made_for() {
    let check = |uid: Option<&str>, data: Value, want: bool| {
        let annotations =
            json!({ "kubernetes.io/service-account.name": "robot", "kubernetes.io/service-account.uid": uid });
        let secret = secret(&json!({ "name": "s", "namespace": "ns", "annotations": annotations }), &data);
        assert_eq!(map::is_token_of(&secret, &account().uid), want, "{uid:?} {data}");
    };
    let token = || json!({ "token": base64(b"t") });
    check(Some("u1"), token(), true);
    check(Some("u1"), json!({}), true);
    check(Some("u2"), token(), false);
    check(Some("u2"), json!({}), false);
    // It does not say whose it was.
    check(None, token(), true);
    check(Some(""), token(), true);
    // It belonged to no account yet.
    check(None, json!({}), false);
    check(Some(""), json!({ "namespace": base64(b"ns") }), false);
}

#[test]
fn a_deleted_secret_leaves_a_reference_that_survives_the_queue() {
    let deleted = |annotations: Value| {
        let last = secret(&json!({ "name": "s", "namespace": "ns", "annotations": annotations }), &json!({}));
        of_deleted(&Change::Deleted { last: Arc::new(last), end: End::Observed })
    };
    let named = json!({ "kubernetes.io/service-account.name": "robot" });
    for (annotations, uid) in [
        (named.clone(), ""),
        (json!({"kubernetes.io/service-account.name": "robot", "kubernetes.io/service-account.uid": "u1"}), "u1"),
    ] {
        let gone = deleted(annotations).unwrap();
        assert_eq!((gone.account.to_string().as_str(), gone.secret.as_str()), ("ns/robot", "s"));
        assert_eq!(gone.account_uid.to_string(), uid);
        assert_eq!(Reference::from_key(&gone.to_key()), Some(gone));
    }
    assert_eq!(deleted(json!({})), None, "it was nobody's");
    let added = Change::Added { new: Arc::new(secret(&json!({ "annotations": named }), &json!({}))), initial: false };
    assert_eq!(of_deleted(&added), None);
    assert_eq!(Reference::from_key(&steersman_base::ObjectKey::new("ns", "robot")), None);
}

#[test]
fn a_reference_is_taken_off_the_account_that_was_meant() {
    let check = |uid: &str, secrets: Value, want: Option<Value>| {
        let account = steersman_base::ObjectKey::new("ns", "robot");
        let gone = Reference { account, account_uid: uid.into(), secret: "s".into() };
        let mut live = json!({ "metadata": { "uid": "u1" }, "secrets": secrets });
        let taken = gone.take_off(&mut live).then(|| live["secrets"].clone());
        assert_eq!(taken, want, "{uid} {secrets}");
    };
    let both = json!([{ "name": "s" }, { "name": "t" }]);
    check("u1", both.clone(), Some(json!([{ "name": "t" }])));
    check("", both.clone(), Some(json!([{ "name": "t" }])));
    check("u2", both, None);
    check("u1", json!([{ "name": "t" }]), None);
    check("u1", json!(null), None);
}
