//! Bearer tokens: texts of any kind, and claims of any kind that the server itself has signed. The server must answer, with 401 unless
//! the token is that of an account that it has.

#![no_main]

use std::cell::OnceCell;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Request;
use http_body_util::Full;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use steersman_apiserver::{ApiServer, Options};
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt as _;

/// A server that asks everybody who they are, and its key.
struct World {
    runtime: Runtime,
    server: ApiServer,
    key: EncodingKey,
}

thread_local! {
    static WORLD: OnceCell<World> = const { OnceCell::new() };
}

impl World {
    fn new() -> Self {
        let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
        let server = runtime.block_on(async { ApiServer::new(Options::default()) });
        server.admin_token().expect("random numbers");
        let pem = server.token_key_pem().expect("random numbers");
        let encoded: String = pem.lines().filter(|line| !line.starts_with("-----")).collect();
        let key = EncodingKey::from_ec_der(&STANDARD.decode(encoded).expect("a key in PEM"));
        Self { runtime, server: server.requiring_authentication(), key }
    }

    /// The token that an input stands for: claims if it is a JSON object, else itself.
    fn token(&self, data: &[u8]) -> Vec<u8> {
        let claims = serde_json::from_slice::<Value>(data).ok().filter(Value::is_object);
        let signed = claims.map(|claims| jsonwebtoken::encode(&Header::new(Algorithm::ES256), &claims, &self.key));
        signed.and_then(Result::ok).map_or_else(|| data.to_vec(), String::into_bytes)
    }

    fn check(&self, data: &[u8]) {
        let header = [b"Bearer ", self.token(data).as_slice()].concat();
        let request = Request::get("/api/v1/namespaces/default/pods/none").header("authorization", header);
        // What is no value of a header does not arrive.
        let Ok(request) = request.body(Full::<bytes::Bytes>::default()) else { return };
        let server = self.server.clone();
        let response = self.runtime.block_on(server.oneshot(request)).expect("an answer");
        let code = response.status().as_u16();
        assert_eq!(code, 401, "nobody has been given a token");
    }
}

fuzz_target!(|data: &[u8]| WORLD.with(|world| world.get_or_init(World::new).check(data)));
