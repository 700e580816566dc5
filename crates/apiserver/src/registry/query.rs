//! The options of a request, from its query.
//!
//! Follows `metav1.ListOptions`, `CreateOptions`, `UpdateOptions`, `PatchOptions` and `DeleteOptions` of Kubernetes 1.37:
//! what upstream ignores is ignored, what it refuses is refused in its words.

use serde_json::{Value, json};
use steersman_structured_merge::{MANAGER_BYTES_MAX, is_printable};

use crate::field::{FieldError, Path};
use crate::schema::FieldValidation;
use crate::status::{GroupResource, Status};

/// The parameters of a query, in order; a parameter may come more than once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Query(Vec<(String, String)>);

/// The options of a create, an update or a patch.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriteOptions {
    /// `fieldManager`
    pub field_manager: String,
    /// `force`
    pub force: bool,
    /// `dryRun`
    pub dry_run: bool,
    /// `fieldValidation`
    pub field_validation: FieldValidation,
}

/// The options of a list or a watch.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListOptions {
    /// `labelSelector`
    pub label_selector: String,
    /// `fieldSelector`
    pub field_selector: String,
    /// `resourceVersion`; unset and `0` differ.
    pub resource_version: Option<u64>,
    /// `resourceVersionMatch`
    pub version_match: Option<VersionMatch>,
    /// `limit`; 0: no limit.
    pub limit: usize,
    /// `continue`
    pub continue_token: String,
    /// `timeoutSeconds`
    pub timeout_seconds: Option<u64>,
    /// `allowWatchBookmarks`
    pub allow_bookmarks: bool,
    /// `sendInitialEvents`
    pub send_initial_events: Option<bool>,
}

/// The relation of a list to its resource version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VersionMatch {
    /// That version or a newer one.
    NotOlderThan,
    /// That version.
    Exact,
}

// === impl Query ===

impl Query {
    /// Reads the part of a URL behind `?`.
    #[must_use]
    pub(crate) fn parse(query: &str) -> Self {
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        Self(
            pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).map(|(k, v)| (decode(k), decode(v))).collect(),
        )
    }

    /// The first value of a parameter; empty if there is none.
    #[must_use]
    pub(crate) fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(held, _)| held == name).map_or("", |(_, value)| value)
    }

    /// All values of a parameter.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(held, _)| held == name).map(|(_, value)| value.as_str())
    }

    /// Whether the parameter is there.
    #[must_use]
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(held, _)| held == name)
    }

    /// A boolean as upstream reads it: present is true, unless it says `false` or `0`.
    #[must_use]
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.has(name) && !matches!(self.get(name).to_ascii_lowercase().as_str(), "false" | "0")
    }

    /// The options of a create, an update or a patch.
    ///
    /// # Errors
    /// If a value is none that is known, an apply has no manager, or another patch is forced.
    pub(crate) fn write_options(&self, kind: &str, is_apply: bool) -> Result<WriteOptions, Status> {
        let mut errors = Vec::new();
        let field_manager = self.get("fieldManager");
        let path = || Path::new("fieldManager");
        if is_apply && field_manager.is_empty() {
            errors.push(FieldError::required(&path(), "is required for apply patch"));
        }
        if kind == "PatchOptions" && !is_apply && self.has("force") {
            errors.push(FieldError::forbidden(&Path::new("force"), "may not be specified for non-apply patch"));
        }
        errors.extend(manager_problems(field_manager, path));
        let values: Vec<_> = self.all("dryRun").filter(|value| !value.is_empty()).collect();
        let dry_run = dry_run(&values).unwrap_or_else(|error| {
            errors.push(error);
            false
        });
        let field_validation = match self.get("fieldValidation") {
            "" | "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            other => {
                let supported = ["", "Ignore", "Strict", "Warn"];
                errors.push(FieldError::not_supported(&Path::new("fieldValidation"), other, &supported));
                FieldValidation::default()
            }
        };
        if !errors.is_empty() {
            return Err(invalid_options(kind, &errors));
        }
        Ok(WriteOptions {
            field_manager: field_manager.to_owned(),
            force: self.flag("force"),
            dry_run,
            field_validation,
        })
    }

    /// The options of a list or a watch.
    ///
    /// # Errors
    /// If a value is malformed, or values do not go together.
    pub(crate) fn list_options(&self, is_watch: bool) -> Result<ListOptions, Status> {
        let number = |name: &str| match self.get(name) {
            "" => Ok(None),
            text => text
                .parse::<i64>()
                .map(Some)
                .map_err(|_| Status::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax"))),
        };
        let limit = number("limit")?;
        let timeout = number("timeoutSeconds")?;
        let send_initial_events = self.has("sendInitialEvents").then(|| self.flag("sendInitialEvents"));
        let mut errors = Vec::new();
        let version_match = self.version_match(is_watch, send_initial_events, &mut errors);
        if !errors.is_empty() {
            return Err(invalid_options("ListOptions", &errors));
        }
        let resource_version = self.resource_version().map_err(|error| {
            if is_watch { error } else { Status::bad_request(format!("invalid resource version: {}", error.message)) }
        })?;
        Ok(ListOptions {
            label_selector: self.get("labelSelector").to_owned(),
            field_selector: self.get("fieldSelector").to_owned(),
            resource_version,
            version_match,
            limit: limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(0),
            continue_token: self.get("continue").to_owned(),
            timeout_seconds: timeout.and_then(|seconds| u64::try_from(seconds).ok()),
            allow_bookmarks: self.flag("allowWatchBookmarks"),
            send_initial_events,
        })
    }

    /// The version that the answer must have reached; none if it is not given.
    ///
    /// # Errors
    /// It is no number.
    pub(crate) fn resource_version(&self) -> Result<Option<u64>, Status> {
        let text = self.get("resourceVersion");
        if text.is_empty() {
            return Ok(None);
        }
        text.parse().map(Some).map_err(|_| {
            Status::plain(format!(
                "resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax"
            ))
        })
    }

    fn version_match(
        &self,
        is_watch: bool,
        send_initial_events: Option<bool>,
        errors: &mut Vec<FieldError>,
    ) -> Option<VersionMatch> {
        let path = Path::new("resourceVersionMatch");
        let text = self.get("resourceVersionMatch");
        let version_match = match text {
            "" => None,
            "NotOlderThan" => Some(VersionMatch::NotOlderThan),
            "Exact" => Some(VersionMatch::Exact),
            other => {
                let supported: &[&str] = if is_watch { &["NotOlderThan"] } else { &["Exact", "NotOlderThan", ""] };
                errors.push(FieldError::not_supported(&path, other, supported));
                None
            }
        };
        if is_watch {
            if send_initial_events.is_some() && version_match != Some(VersionMatch::NotOlderThan) {
                let detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
                errors.push(FieldError::forbidden(&path, detail));
            }
            if send_initial_events.is_none() && !text.is_empty() {
                let detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
                errors.insert(0, FieldError::forbidden(&path, detail));
            }
            if version_match == Some(VersionMatch::Exact) {
                errors.push(FieldError::not_supported(&path, "Exact", &["NotOlderThan"]));
            }
            return version_match;
        }
        if send_initial_events.is_some() {
            errors.push(FieldError::forbidden(
                &Path::new("sendInitialEvents"),
                "sendInitialEvents is forbidden for list",
            ));
        }
        if text.is_empty() {
            return None;
        }
        if self.get("resourceVersion").is_empty() {
            let detail = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            errors.push(FieldError::forbidden(&path, detail));
        }
        if !self.get("continue").is_empty() {
            errors.push(FieldError::forbidden(&path, "resourceVersionMatch is forbidden when continue is provided"));
        }
        if version_match == Some(VersionMatch::Exact) && self.get("resourceVersion") == "0" {
            let detail = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            errors.push(FieldError::forbidden(&path, detail));
        }
        version_match
    }
}

/// Returns the errors of a field manager's name. Almost no name has any, so that the path is made only for an error.
pub(crate) fn manager_problems(name: &str, path: impl Fn() -> Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if name.len() > MANAGER_BYTES_MAX {
        errors.push(FieldError::too_long(&path(), MANAGER_BYTES_MAX));
    }
    for (at, letter) in name.char_indices().filter(|(_, letter)| !is_printable(*letter)) {
        let detail = format!("invalid character U+{:04X} (at position {at})", u32::from(letter));
        errors.push(FieldError::invalid(&path(), name, detail));
        if errors.len() > MANAGER_BYTES_MAX {
            break;
        }
    }
    errors
}

/// Whether nothing is to be written, by the values of `dryRun`.
pub(crate) fn dry_run(values: &[&str]) -> Result<bool, FieldError> {
    match values {
        [] => Ok(false),
        ["All"] => Ok(true),
        other => Err(FieldError::not_supported(&Path::new("dryRun"), json!(other), &["All"])),
    }
}

/// 422 about options.
pub(crate) fn invalid_options(kind: &str, errors: &[FieldError]) -> Status {
    Status::invalid(GroupResource { group: "meta.k8s.io", resource: kind }, "", errors)
}

/// Percent-decodes; `+` is a space. What is no escape stays as it is, and what is no UTF-8 is replaced.
pub(crate) fn decode(text: &str) -> String {
    if !text.contains(['%', '+']) {
        return text.to_owned();
    }
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escape = bytes.get(at + 1..at + 3).and_then(|digits| std::str::from_utf8(digits).ok());
        match (bytes[at], escape.and_then(|digits| u8::from_str_radix(digits, 16).ok())) {
            (b'%', Some(byte)) => {
                decoded.push(byte);
                at += 3;
                continue;
            }
            (b'+', _) => decoded.push(b' '),
            (byte, _) => decoded.push(byte),
        }
        at += 1;
    }
    String::from_utf8(decoded).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// The values of a JSON list of strings.
pub(crate) fn strings(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}
