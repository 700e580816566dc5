//! Temporary.
use http_body_util::BodyExt;
use serde_json::{Value, json};
use steersman_apiserver::{ApiServer, Options};
use steersman_base::Clock;
use tower::ServiceExt;
use std::io::Write;

#[tokio::test(start_paused = true)]
async fn run() {
    let Ok(path) = std::env::var("KDIFF_IN") else { return };
    let clock = Clock::starting_at("2026-11-15T20:06:43Z".parse().unwrap());
    let server = ApiServer::new(Options { clock, ..Options::default() });
    let mut out = std::io::BufWriter::new(std::fs::File::create(std::env::var("KDIFF_OUT").unwrap()).unwrap());
    let mut rows: Vec<Value> = vec![json!({"id":"ns","method":"POST","path":"/api/v1/namespaces","body":{"metadata":{"name":"t"}}})];
    rows.extend(std::fs::read_to_string(path).unwrap().lines().map(|l| serde_json::from_str::<Value>(l).unwrap()));
    for row in rows {
        let req = http::Request::builder().method(row["method"].as_str().unwrap()).uri(row["path"].as_str().unwrap())
            .header("Accept", "application/json").header("Content-Type", row["type"].as_str().unwrap_or("application/json"))
            .body(http_body_util::Full::new(bytes::Bytes::from(row["body"].to_string()))).unwrap();
        let resp = server.clone().oneshot(req).await.unwrap();
        let code = resp.status().as_u16();
        let body = resp.into_body().collect().await.unwrap().to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap_or(Value::String(String::from_utf8_lossy(&body).into_owned()));
        writeln!(out, "{}", json!({"id": row["id"], "code": code, "body": body})).unwrap();
    }
}
