//! kube-apiserver's recorded answers, and ours to the same requests in the same order.
//!
//! Everything must be equal but what cannot be: uids, times, resource versions, generated names, cluster IPs and tokens.
//! `later.txt` lists what a later issue brings. `pending.txt` lists what is still to
//! be done; an id there that has become equal fails the test, so that the list only ever shrinks. `further.jsonl` and
//! `gaps.jsonl` were recorded in the same way by this project's rig, for what the first script does not ask: `gaps.jsonl`
//! is about scales, statuses, evictions, deletion with dependents, reviews, and what is there at the start.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails its test")]

use http_body_util::BodyExt;
use serde_json::{Map, Value, json};
use steersman_apiserver::{ApiServer, Authorization, Options};
use steersman_base::Clock;
use tower::ServiceExt;

const ANSWERS: &str = include_str!("data/answers.jsonl");
const FURTHER: &str = include_str!("data/further.jsonl");
const GAPS: &str = include_str!("data/gaps.jsonl");
const LATER: &str = include_str!("data/later.txt");
const PENDING: &str = include_str!("data/pending.txt");
/// How many differences of one answer are shown.
const DIFFERENCES_MAX: usize = 12;

#[tokio::test(start_paused = true)]
async fn every_recorded_answer_is_ours_too() {
    compare(ANSWERS, Owners::Recorded).await;
}

#[tokio::test(start_paused = true)]
async fn every_further_answer_is_ours_too() {
    compare(FURTHER, Owners::NotRecorded).await;
}

#[tokio::test(start_paused = true)]
async fn what_controllers_and_reviewers_ask_is_answered_alike() {
    compare(GAPS, Owners::NotRecorded).await;
}

/// Whether a recording has `managedFields`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owners {
    Recorded,
    NotRecorded,
}

async fn compare(recorded: &str, owners: Owners) {
    let clock = Clock::starting_at("2026-11-15T20:06:43Z".parse().unwrap());
    let server = ApiServer::new(Options::default().clock(clock).authorization(Authorization::Rbac));
    let later: Vec<&str> = LATER.lines().collect();
    let pending: Vec<&str> = PENDING.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
    let mut equal = 0;
    let mut total = 0;
    let mut unexpected = Vec::new();
    let mut surprises = Vec::new();
    for line in recorded.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let id = row["id"].as_str().unwrap().to_owned();
        let got = replay(&server, &row).await;
        let is_later = later.contains(&id.as_str());
        total += usize::from(!is_later);
        let answer = &row["answer"];
        let want = json!({"code": answer["code"], "warnings": answer["warnings"], "body": parsed(&answer["body"])});
        let mut differences = Vec::new();
        diff("", &normal(&want, "", owners), &normal(&got, "", owners), &mut differences);
        let is_pending = pending.contains(&id.as_str());
        equal += usize::from(differences.is_empty() && !is_later);
        match (differences.is_empty(), is_pending || is_later) {
            (true, true) => surprises.push(id),
            (false, false) => {
                println!("== {id}: {} {}", row["method"], row["path"]);
                differences.iter().take(DIFFERENCES_MAX).for_each(|difference| println!("   {difference}"));
                unexpected.push(id);
            }
            _ => {}
        }
    }
    println!("{equal} of {total} recorded answers are equal");
    assert!(unexpected.is_empty(), "{} answers differ: {unexpected:?}", unexpected.len());
    assert!(surprises.is_empty(), "these are equal now and no longer pending: {surprises:?}");
}

async fn replay(server: &ApiServer, row: &Value) -> Value {
    tokio::time::sleep(std::time::Duration::from_secs(row["sleep"].as_u64().unwrap_or(0))).await;
    let mut headers = Map::from_iter([
        ("Accept".to_owned(), json!("application/json")),
        ("User-Agent".to_owned(), json!("recorder/1")),
    ]);
    let body = match (row.get("body"), row["text"].as_str()) {
        (Some(body), _) => Some(body.to_string()),
        (None, text) => text.map(str::to_owned),
    };
    if body.is_some() {
        let kind = row["type"].as_str().unwrap_or("application/json");
        headers.insert("Content-Type".into(), kind.into());
    }
    headers.extend(row["headers"].as_object().into_iter().flatten().map(|(key, value)| (key.clone(), value.clone())));
    let mut request =
        http::Request::builder().method(row["method"].as_str().unwrap()).uri(row["path"].as_str().unwrap());
    for (key, value) in headers.iter().filter(|(_, value)| !value.is_null()) {
        request = request.header(key, value.as_str().unwrap());
    }
    let request = request.body(http_body_util::Full::new(bytes::Bytes::from(body.unwrap_or_default()))).unwrap();
    let response = server.clone().oneshot(request).await.unwrap();
    let code = response.status().as_u16();
    let warnings: Vec<_> =
        response.headers().get_all("warning").iter().map(|value| value.to_str().unwrap().to_owned()).collect();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    // What the server does on its own between two requests.
    tokio::task::yield_now().await;
    let text = String::from_utf8_lossy(&body).into_owned();
    json!({"code": code, "warnings": warnings, "body": parsed(&text.into())})
}

/// JSON, lines of JSON, or text.
fn parsed(body: &Value) -> Value {
    let Some(text) = body.as_str() else { return body.clone() };
    if let Ok(value) = serde_json::from_str(text) {
        return value;
    }
    let lines: Result<Vec<Value>, _> = text.lines().map(serde_json::from_str).collect();
    match lines {
        Ok(lines) if !lines.is_empty() => lines.into(),
        _ => body.clone(),
    }
}

/// The value without what differs from run to run.
fn normal(value: &Value, key: &str, owners: Owners) -> Value {
    match value {
        Value::Object(map) => {
            let is_generated = map.contains_key("generateName");
            let is_compared = |name: &str| owners == Owners::Recorded || name != "managedFields";
            let fields = map.iter().filter(|(name, _)| is_compared(name));
            fields
                .map(|(name, value)| match name.as_str() {
                    "resourceVersion" | "uid" | "token" | "continue" | "serverAddress" | "goVersion" | "compiler"
                    | "gitCommit" | "platform"
                        if value.is_string() =>
                    {
                        (name.clone(), json!("<some>"))
                    }
                    "name" if is_generated => (name.clone(), json!("<generated>")),
                    _ => (name.clone(), normal(value, name, owners)),
                })
                .collect()
        }
        Value::Array(items) => items.iter().map(|item| normal(item, key, owners)).collect(),
        Value::String(text) => match key {
            "clusterIP" | "clusterIPs" if text != "None" && !text.is_empty() => json!("<ip>"),
            "cells" if is_age(text) => json!("<age>"),
            "cells" if text.parse::<std::net::Ipv4Addr>().is_ok() => json!("<ip>"),
            _ => json!(masked(text)),
        },
        other => other.clone(),
    }
}

fn is_age(text: &str) -> bool {
    let body = text.trim_end_matches(['s', 'm', 'h', 'd']);
    body.len() < text.len() && !body.is_empty() && body.chars().all(|c| c.is_ascii_digit())
}

/// Text with its uids, times and versions masked.
fn masked(text: &str) -> String {
    let mut masked = String::new();
    let mut rest = text;
    'next: while let Some(first) = rest.chars().next() {
        for (length, name, is_such) in
            [(36, "<uid>", is_uid as fn(&str) -> bool), (20, "<time>", is_time as fn(&str) -> bool)]
        {
            if let Some(part) = rest.get(..length).filter(|part| is_such(part)) {
                masked.push_str(name);
                rest = &rest[part.len()..];
                continue 'next;
            }
        }
        for prefix in ["in record (", "current: "] {
            let is_number = |behind: &&str| {
                behind.starts_with(|c: char| c.is_ascii_digit()) && !behind.get(..36).is_some_and(is_uid)
            };
            if let Some(behind) = rest.strip_prefix(prefix).filter(is_number) {
                masked.push_str(prefix);
                masked.push_str("<version>");
                rest = behind.trim_start_matches(|c: char| c.is_ascii_digit());
                continue 'next;
            }
        }
        masked.push(first);
        rest = &rest[first.len_utf8()..];
    }
    masked
}

fn is_uid(text: &str) -> bool {
    text.bytes().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    })
}

fn is_time(text: &str) -> bool {
    text.parse::<steersman_base::Time>().is_ok()
}

fn diff(path: &str, want: &Value, got: &Value, differences: &mut Vec<String>) {
    match (want, got) {
        (Value::Object(left), Value::Object(right)) => {
            let keys: std::collections::BTreeSet<_> = left.keys().chain(right.keys()).collect();
            for key in keys {
                match (left.get(key), right.get(key)) {
                    (Some(left), Some(right)) => diff(&format!("{path}.{key}"), left, right, differences),
                    (Some(left), None) => differences.push(format!("{path}.{key}: missing, want {}", short(left))),
                    (None, Some(right)) => differences.push(format!("{path}.{key}: not wanted: {}", short(right))),
                    (None, None) => {}
                }
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (at, (left, right)) in left.iter().zip(right).enumerate() {
                diff(&format!("{path}[{at}]"), left, right, differences);
            }
        }
        (left, right) if left != right => {
            differences.push(format!("{path}: want {}, got {}", short(left), short(right)));
        }
        _ => {}
    }
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    if text.len() > 400 { text.chars().take(400).collect::<String>() + "…" } else { text }
}
