//! `/statusz` and `/flagz`, in upstream's formats (`apiserver/pkg/server/{statusz,flagz}`, 1.37).
//!
//! Text by default; JSON or YAML for who asks for a version:
//! `Accept: application/json;as=Statusz;g=config.k8s.io;v=v1beta1`; and CBOR, if that is [offered](super::Admin::offer_cbor).
//! The older `v1alpha1` answers with a warning. Upstream draws the delimiter of the text by lot, so that nobody parses it;
//! ours is always one of upstream's.

mod encode;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use http::{HeaderValue, StatusCode, header};
use serde_json::{Value, json};
use steersman_base::Time;

use super::{Call, page};
use crate::serving::Response;

/// The facts that `/statusz` shows of a program.
#[derive(Clone, Debug, Default)]
pub struct StatusInfo {
    /// The start time of the process.
    pub started: Time,
    /// The version of the language the program is written in; upstream's field is `goVersion`.
    pub language_version: String,
    /// The version of the program.
    pub binary_version: String,
    /// The Kubernetes version that the program emulates, such as `1.37`.
    pub emulation_version: String,
    /// Served paths that are not listed, beside `/debug` and the page itself: those that upstream's program of this
    /// name does not serve.
    pub unlisted: Vec<&'static str>,
}

/// The format that a client accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Text,
    /// An object of this version.
    Object(Encoding, &'static str),
}

/// The encoding of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Json,
    Yaml,
    Cbor,
}

/// The offered formats, in upstream's order: the first that a clause allows, counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Offer {
    Text,
    Object(Encoding),
}

const GROUP: &str = "config.k8s.io";
const VERSIONS: [&str; 2] = ["v1alpha1", "v1beta1"];
const DEPRECATED: &str = "v1alpha1";
const DELIMITER: &str = ":";
/// Upstream does not list its debugging pages, nor the status page itself.
const UNLISTED: [&str; 2] = ["/debug", "/statusz"];
const OFFERS: [Offer; 4] =
    [Offer::Object(Encoding::Json), Offer::Object(Encoding::Yaml), Offer::Text, Offer::Object(Encoding::Cbor)];

pub(super) fn statusz(
    call: &Call,
    component: &str,
    info: &StatusInfo,
    now: Time,
    paths: &[String],
    cbor: bool,
) -> Response {
    let format = match negotiate(accept(call), "Statusz", cbor) {
        Ok(format) => format,
        Err(message) => return not_acceptable(call, &message),
    };
    let mut paths = folders(paths);
    paths.retain(|path| !UNLISTED.contains(&path.as_str()) && !info.unlisted.contains(&path.as_str()));
    let up = now.since(info.started).as_secs();
    match format {
        Format::Text => page::text(StatusCode::OK, statusz_text(component, info, up, &paths)),
        Format::Object(encoding, version) => {
            let mut object = object("Statusz", version, component);
            object["startTime"] = json!(info.started);
            object["uptimeSeconds"] = json!(up);
            object["goVersion"] = json!(info.language_version);
            object["binaryVersion"] = json!(info.binary_version);
            if !info.emulation_version.is_empty() {
                object["emulationVersion"] = json!(info.emulation_version);
            }
            object["paths"] = json!(paths);
            structured(&object, encoding, version, "statusz")
        }
    }
}

pub(super) fn flagz(call: &Call, component: &str, flags: &BTreeMap<String, String>, cbor: bool) -> Response {
    match negotiate(accept(call), "Flagz", cbor) {
        Err(message) => not_acceptable(call, &message),
        Ok(Format::Text) => {
            let mut text = heading(component, "flagz");
            for (name, value) in flags {
                let _ = writeln!(text, "{name}={value}");
            }
            page::text(StatusCode::OK, text)
        }
        Ok(Format::Object(encoding, version)) => {
            let mut object = object("Flagz", version, component);
            if !flags.is_empty() {
                object["flags"] = json!(flags);
            }
            structured(&object, encoding, version, "flagz")
        }
    }
}

/// Returns the format that an `Accept` header asks for.
pub(super) fn negotiate(accept: &str, kind: &str, cbor: bool) -> Result<Format, String> {
    if accept.trim().is_empty() {
        return Ok(Format::Text);
    }
    let mut clauses: Vec<_> = accept.split(',').map(Clause::parse).filter(|clause| clause.quality > 0.0).collect();
    // Stable: of equal clauses the first wins; a specific media type wins over a wildcard.
    clauses.sort_by(|a, b| b.quality.total_cmp(&a.quality).then(a.wildcards().cmp(&b.wildcards())));
    let offers = || OFFERS.into_iter().filter(|offer| cbor || *offer != Offer::Object(Encoding::Cbor));
    let found = clauses.iter().find_map(|clause| offers().find_map(|offer| clause.format(offer, kind)));
    found.ok_or_else(|| {
        let types: Vec<_> = offers().map(Offer::media_type).collect();
        format!("only the following media types are accepted: {}", types.join(", "))
    })
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

    /// Returns the number of wildcards in the media type.
    fn wildcards(&self) -> usize {
        self.media.split('/').filter(|part| *part == "*").count()
    }

    fn format(&self, offer: Offer, kind: &str) -> Option<Format> {
        let of = |name: &str| self.parameters.get(name).copied();
        let offered = offer.media_type();
        let is_meant = match self.media.split_once('/') {
            Some(("*", "*")) => true,
            Some((main, "*")) => offered.split('/').next() == Some(main),
            _ => self.media == offered,
        };
        // Neither streams nor server versions are available here.
        let is_to_be_had = ["stream", "sv"].into_iter().all(|name| of(name).unwrap_or_default().is_empty());
        if !is_meant || !is_to_be_had {
            return None;
        }
        match offer {
            Offer::Text => ["as", "g", "v"].into_iter().all(|name| of(name).is_none()).then_some(Format::Text),
            Offer::Object(encoding) if of("as") == Some(kind) && of("g") == Some(GROUP) => {
                let version = VERSIONS.into_iter().find(|version| of("v") == Some(*version));
                version.map(|version| Format::Object(encoding, version))
            }
            Offer::Object(_) => None,
        }
    }
}

// === impl Offer ===

impl Offer {
    const fn media_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain",
            Self::Object(encoding) => encoding.media_type(),
        }
    }
}

// === impl Encoding ===

impl Encoding {
    const fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
            Self::Cbor => "application/cbor",
        }
    }

    fn of(self, object: &Value) -> Vec<u8> {
        match self {
            Self::Json => object.to_string().into_bytes(),
            Self::Yaml => encode::yaml(object).into_bytes(),
            Self::Cbor => encode::cbor(object),
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
    let language = &info.language_version;
    let binary = &info.binary_version;
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

/// Returns the first segments of paths, each once.
fn folders(paths: &[String]) -> Vec<String> {
    let first = |path: &String| path.split('/').nth(1).filter(|part| !part.is_empty()).map(|part| format!("/{part}"));
    paths.iter().filter_map(first).collect::<BTreeSet<_>>().into_iter().collect()
}

fn object(kind: &str, version: &str, component: &str) -> Value {
    json!({"kind": kind, "apiVersion": format!("{GROUP}/{version}"), "metadata": {"name": component}})
}

fn structured(object: &Value, encoding: Encoding, version: &str, endpoint: &str) -> Response {
    let mut response = page::bytes(StatusCode::OK, encoding.media_type(), encoding.of(object));
    if version == DEPRECATED {
        let warning =
            format!("299 - \"This version of the {endpoint} endpoint is deprecated. Please use a newer version.\"");
        if let Ok(warning) = HeaderValue::try_from(warning) {
            response.headers_mut().insert(header::WARNING, warning);
        }
    }
    response
}
