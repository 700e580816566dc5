//! `/statusz` and `/flagz`, in upstream's formats (`apiserver/pkg/server/{statusz,flagz}`, 1.37).
//!
//! Text by default; JSON for who asks for a version:
//! `Accept: application/json;as=Statusz;g=config.k8s.io;v=v1beta1`. The older `v1alpha1` answers with a warning. Upstream
//! draws the delimiter of the text by lot, so that nobody parses it; ours is always one of upstream's. YAML and CBOR are
//! not offered.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use http::{HeaderValue, StatusCode, header};
use serde_json::{Value, json};
use steersman_base::Time;

use super::{Call, page};
use crate::serving::Response;

/// What `/statusz` tells of a program.
#[derive(Clone, Debug, Default)]
pub struct StatusInfo {
    /// When the process was started.
    pub started: Time,
    /// The version of the language it is written in; upstream's field is `goVersion`.
    pub language_version: String,
    /// Its own version.
    pub binary_version: String,
    /// The Kubernetes version it behaves as, such as `1.37`.
    pub emulation_version: String,
}

/// What a client takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Text,
    /// Of this version.
    Json(&'static str),
}

const GROUP: &str = "config.k8s.io";
const VERSIONS: [&str; 2] = ["v1alpha1", "v1beta1"];
const DEPRECATED: &str = "v1alpha1";
const DELIMITER: &str = ":";

pub(super) fn statusz(call: &Call, component: &str, info: &StatusInfo, now: Time, paths: &[String]) -> Response {
    let format = match negotiate(accept(call), "Statusz") {
        Ok(format) => format,
        Err(message) => return not_acceptable(call, &message),
    };
    let paths = folders(paths);
    let up = now.since(info.started).as_secs();
    match format {
        Format::Text => page::text(StatusCode::OK, statusz_text(component, info, up, &paths)),
        Format::Json(version) => {
            let mut object = object("Statusz", version, component);
            object["startTime"] = json!(info.started);
            object["uptimeSeconds"] = json!(up);
            object["goVersion"] = json!(info.language_version);
            object["binaryVersion"] = json!(info.binary_version);
            if !info.emulation_version.is_empty() {
                object["emulationVersion"] = json!(info.emulation_version);
            }
            object["paths"] = json!(paths);
            structured(&object, version, "statusz")
        }
    }
}

pub(super) fn flagz(call: &Call, component: &str, flags: &BTreeMap<String, String>) -> Response {
    match negotiate(accept(call), "Flagz") {
        Err(message) => not_acceptable(call, &message),
        Ok(Format::Text) => {
            let mut text = heading(component, "flagz");
            for (name, value) in flags {
                let _ = writeln!(text, "{name}={value}");
            }
            page::text(StatusCode::OK, text)
        }
        Ok(Format::Json(version)) => {
            let mut object = object("Flagz", version, component);
            if !flags.is_empty() {
                object["flags"] = json!(flags);
            }
            structured(&object, version, "flagz")
        }
    }
}

/// Which format an `Accept` header asks for.
pub(super) fn negotiate(accept: &str, kind: &str) -> Result<Format, String> {
    if accept.trim().is_empty() {
        return Ok(Format::Text);
    }
    let mut clauses: Vec<_> = accept.split(',').map(Clause::parse).filter(|clause| clause.quality > 0.0).collect();
    // Stable: of equal ones the first wins.
    clauses.sort_by(|a, b| b.quality.total_cmp(&a.quality));
    let found = clauses.iter().find_map(|clause| clause.format(kind));
    found.ok_or_else(|| "only the following media types are accepted: application/json, text/plain".to_owned())
}

/// One clause of an `Accept` header.
struct Clause<'a> {
    media: &'a str,
    quality: f64,
    parameters: BTreeMap<&'a str, &'a str>,
}

// === impl Clause ===

impl<'a> Clause<'a> {
    fn parse(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default();
        let parameters: BTreeMap<_, _> = parts.filter_map(|part| part.split_once('=')).collect();
        let quality = parameters.get("q").map_or(Some(1.0), |quality| quality.parse().ok()).unwrap_or(0.0);
        Self { media, quality, parameters }
    }

    fn format(&self, kind: &str) -> Option<Format> {
        let of = |name: &str| self.parameters.get(name).copied();
        match (self.media, of("as")) {
            ("text/plain" | "text/*" | "*/*", None) => Some(Format::Text),
            ("application/json" | "application/*" | "*/*", Some(asked)) if asked == kind && of("g") == Some(GROUP) => {
                VERSIONS.into_iter().find(|version| of("v") == Some(*version)).map(Format::Json)
            }
            _ => None,
        }
    }
}

fn accept(call: &Call) -> &str {
    call.headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default()
}

fn not_acceptable(call: &Call, message: &str) -> Response {
    page::status(&call.headers, &call.query, StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message, false)
}

fn heading(component: &str, page: &str) -> String {
    format!(
        "\n{component} {page}\nWarning: This endpoint is not meant to be machine parseable, has no formatting \
         compatibility guarantees and is for debugging purposes only.\n"
    )
}

fn statusz_text(component: &str, info: &StatusInfo, up: u64, paths: &[String]) -> String {
    let started = unix_date(info.started);
    let up = format!("{} hr {:02} min {:02} sec", up / 3600, (up / 60) % 60, up % 60);
    let mut text = heading(component, "statusz");
    let _ = write!(text, "\nStarted{DELIMITER} {started}\nUp{DELIMITER} {up}\n");
    let (language, binary) = (&info.language_version, &info.binary_version);
    let _ = write!(text, "Go version{DELIMITER} {language}\nBinary version{DELIMITER} {binary}\n");
    if !info.emulation_version.is_empty() {
        let _ = write!(text, "Emulation version{DELIMITER} {}", info.emulation_version);
    }
    text.push('\n');
    if !paths.is_empty() {
        let _ = write!(text, "Paths{DELIMITER} {}", paths.join(" "));
    }
    text.push('\n');
    text
}

/// Go's `time.UnixDate`, in UTC.
fn unix_date(time: Time) -> String {
    let written =
        jiff::Timestamp::from_second(time.unix()).map(|time| time.strftime("%a %b %e %H:%M:%S UTC %Y").to_string());
    written.unwrap_or_else(|_| time.to_string())
}

/// The first parts of paths, each once.
fn folders(paths: &[String]) -> Vec<String> {
    let first = |path: &String| path.split('/').nth(1).filter(|part| !part.is_empty()).map(|part| format!("/{part}"));
    paths.iter().filter_map(first).collect::<BTreeSet<_>>().into_iter().collect()
}

fn object(kind: &str, version: &str, component: &str) -> Value {
    json!({"kind": kind, "apiVersion": format!("{GROUP}/{version}"), "metadata": {"name": component}})
}

fn structured(object: &Value, version: &str, endpoint: &str) -> Response {
    let mut response = page::json(StatusCode::OK, object);
    if version == DEPRECATED {
        let warning =
            format!("299 - \"This version of the {endpoint} endpoint is deprecated. Please use a newer version.\"");
        if let Ok(warning) = HeaderValue::try_from(warning) {
            response.headers_mut().insert(header::WARNING, warning);
        }
    }
    response
}
