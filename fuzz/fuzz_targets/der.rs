//! Certificates and certificate requests, as DER and as PEM: those of clients, and those in the fields of objects. Writes are dry runs.
//! The server must answer, and never with an error of its own.

#![no_main]

use std::cell::OnceCell;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use steersman_apiserver::{ApiServer, Options, fuzzing};
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt as _;

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const BUNDLES: &str = "/apis/certificates.k8s.io/v1/clustertrustbundles";
const OF_PODS: &str = "/apis/certificates.k8s.io/v1/namespaces/default/podcertificaterequests";

struct World {
    runtime: Runtime,
    server: ApiServer,
    /// A PodCertificateRequest as it is stored.
    asked: Value,
}

thread_local! {
    static WORLD: OnceCell<World> = const { OnceCell::new() };
}

fn pem(kind: &str, der: &[u8]) -> String {
    format!("-----BEGIN {kind}-----\n{}\n-----END {kind}-----\n", STANDARD.encode(der))
}

fn request(pem: &str) -> Value {
    json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": "fuzz"},
        "spec": {"request": STANDARD.encode(pem), "signerName": "example.com/signer", "usages": ["client auth"]},
    })
}

fn request_of_pod(der: &[u8]) -> Value {
    json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "PodCertificateRequest", "metadata": {"name": "fuzz"},
        "spec": {
            "signerName": "example.com/signer", "podName": "p", "podUID": "1", "serviceAccountName": "s",
            "serviceAccountUID": "2", "nodeName": "n", "nodeUID": "3", "stubPKCS10Request": STANDARD.encode(der),
        },
    })
}

fn bundle(text: &str) -> Value {
    json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "ClusterTrustBundle", "metadata": {"name": "fuzz"},
        "spec": {"trustBundle": text},
    })
}

impl World {
    fn new() -> Self {
        let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
        let server = runtime.block_on(async { ApiServer::new(Options::default()) });
        let mut world = Self { runtime, server, asked: Value::Null };
        // The seeds begin with what they are.
        let there = include_str!("../corpus/der/request.pem").trim_start_matches('2');
        let (code, answer) = world.send("POST", REQUESTS, &request(there));
        assert_eq!(code, 201, "{answer}");
        let (code, answer) =
            world.send("POST", OF_PODS, &request_of_pod(&include_bytes!("../corpus/der/pod.der")[1..]));
        assert_eq!(code, 201, "{answer}");
        world.asked = answer;
        world
    }

    fn send(&self, method: &str, uri: &str, body: &Value) -> (u16, Value) {
        let request = Request::builder().method(method).uri(uri).header("content-type", "application/json");
        let request = request.body(Full::new(Bytes::from(body.to_string()))).expect("a request");
        let server = self.server.clone();
        self.runtime.block_on(async move {
            let response = server.oneshot(request).await.expect("an answer");
            let code = response.status().as_u16();
            let body = response.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
            (code, serde_json::from_slice(&body).unwrap_or_default())
        })
    }

    /// The first byte chooses what the rest is: odd numbers are DER, even ones PEM.
    fn check(&self, data: &[u8]) {
        let Some((first, rest)) = data.split_first() else { return };
        let kind = first & 0xf;
        let text = |label: &str| match kind % 2 {
            0 => String::from_utf8_lossy(rest).into_owned(),
            _ => pem(label, rest),
        };
        let (method, path, body) = match kind {
            0 => return fuzzing::client_certificate(rest),
            1 | 2 => ("POST", REQUESTS.to_owned(), request(&text("CERTIFICATE REQUEST"))),
            3 | 4 => {
                let mut signed = request("");
                signed["status"] = json!({"certificate": STANDARD.encode(text("CERTIFICATE"))});
                ("PUT", format!("{REQUESTS}/fuzz/status"), signed)
            }
            5 | 6 => ("POST", BUNDLES.to_owned(), bundle(&text("CERTIFICATE"))),
            7 => ("POST", OF_PODS.to_owned(), request_of_pod(rest)),
            _ => {
                let mut issued = self.asked.clone();
                issued["status"] = json!({
                    "certificateChain": text("CERTIFICATE"), "notBefore": "2026-11-19T00:00:00Z",
                    "notAfter": "2026-11-20T00:00:00Z", "beginRefreshAt": "2026-11-19T12:00:00Z",
                    "conditions": [{
                        "type": "Issued", "status": "True", "reason": "r", "message": "m",
                        "lastTransitionTime": "2026-11-19T00:00:00Z",
                    }],
                });
                ("PUT", format!("{OF_PODS}/fuzz/status"), issued)
            }
        };
        let (code, answer) = self.send(method, &format!("{path}?dryRun=All"), &body);
        assert!(code < 500, "{method} {path}: {code}: {answer}");
    }
}

fuzz_target!(|data: &[u8]| WORLD.with(|world| world.get_or_init(World::new).check(data)));
