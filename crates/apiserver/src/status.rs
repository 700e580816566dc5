//! Answers that are not objects: upstream's `Status`, word for word.
//!
//! 1. Every refusal is one [`Status`]; nothing else leaves the registry as an error.
//! 2. Code, reason, message and details are those of kube-apiserver 1.37: clients match on them.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::field::FieldError;

/// A refusal (or, rarely, a success without an object).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Status {
    /// The HTTP status.
    pub code: u16,
    /// `reason`; empty where upstream gives none.
    pub reason: &'static str,
    /// `message`.
    pub message: String,
    /// `details`, where upstream gives any.
    pub details: Option<Box<Details>>,
    /// The warnings about the body that was refused; they are headers, no part of the status.
    pub warnings: Vec<String>,
}

/// `details` of a [`Status`].
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Details {
    /// Name of the object.
    pub name: String,
    /// Group of the resource.
    pub group: String,
    /// Its resource, or its kind where upstream says so.
    pub kind: String,
    /// Its uid.
    pub uid: String,
    /// The single errors.
    pub causes: Vec<Cause>,
    /// The seconds after which to try again.
    pub retry_after_seconds: u32,
    /// The token with which an expired list can continue: `continue` of the status's own metadata.
    pub continue_token: String,
    /// The whole status, where a webhook has answered it: it is shown as it is.
    pub answered: Option<Value>,
}

/// One of the things that are wrong.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cause {
    /// Machine-readable.
    pub reason: &'static str,
    /// For people.
    pub message: String,
    /// The field; empty if none.
    pub field: String,
}

/// Group and plural of a resource, for messages: `deployments.apps`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupResource<'a> {
    /// The group; empty for the core group.
    pub group: &'a str,
    /// The plural, or the kind.
    pub resource: &'a str,
}

// === impl Status ===

impl Status {
    /// A refusal with these words and no details.
    #[must_use]
    pub(crate) fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: None, warnings: Vec::new() }
    }

    /// Adds warnings.
    #[must_use]
    pub(crate) fn warning(mut self, warnings: &[String]) -> Self {
        self.warnings.extend_from_slice(warnings);
        self
    }

    fn about(mut self, target: GroupResource<'_>, name: &str) -> Self {
        self.details = Some(Box::new(Details {
            name: name.to_owned(),
            group: target.group.to_owned(),
            kind: target.resource.to_owned(),
            ..Details::default()
        }));
        self
    }

    fn with_empty_details(mut self) -> Self {
        self.details = Some(Box::default());
        self
    }

    /// 400: the request makes no sense.
    #[must_use]
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 401: who are you?
    #[must_use]
    pub(crate) fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// 403: not this, not you, or not now.
    #[must_use]
    pub(crate) fn forbidden(target: GroupResource<'_>, name: &str, why: &str) -> Self {
        let message = match (target.resource.is_empty(), name.is_empty()) {
            (true, _) => format!("forbidden: {why}"),
            (false, true) => format!("{target} is forbidden: {why}"),
            (false, false) => format!("{target} {name:?} is forbidden: {why}"),
        };
        Self::new(403, "Forbidden", message).about(target, name)
    }

    /// 404: no such object.
    #[must_use]
    pub(crate) fn not_found(target: GroupResource<'_>, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{target} {name:?} not found")).about(target, name)
    }

    /// 404: no such resource.
    #[must_use]
    pub(crate) fn no_resource() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource").with_empty_details()
    }

    /// 405: the resource does not know this verb.
    #[must_use]
    pub(crate) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(405, "MethodNotAllowed", message).with_empty_details()
    }

    /// 405 of a resource that is there, but takes no such verb at this path.
    #[must_use]
    pub(crate) fn method_not_supported(target: GroupResource<'_>, action: &str) -> Self {
        Self::new(405, "MethodNotAllowed", format!("{action} is not supported on resources of kind \"{target}\""))
            .about(target, "")
    }

    /// 406: nothing we can write is acceptable.
    #[must_use]
    pub(crate) fn not_acceptable() -> Self {
        let message = "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, \
                       application/vnd.kubernetes.protobuf, application/json;stream=watch, \
                       application/vnd.kubernetes.protobuf;stream=watch";
        Self::new(406, "NotAcceptable", message).with_empty_details()
    }

    /// 409: there is one already.
    #[must_use]
    pub(crate) fn already_exists(target: GroupResource<'_>, name: &str) -> Self {
        Self::new(409, "AlreadyExists", format!("{target} {name:?} already exists")).about(target, name)
    }

    /// 409: somebody else was faster, or a precondition does not hold.
    #[must_use]
    pub(crate) fn conflict(target: GroupResource<'_>, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {target} {name:?}: {why}");
        Self::new(409, "Conflict", message).about(target, name)
    }

    /// 409: the body's resource version is not the newest.
    #[must_use]
    pub(crate) fn modified(target: GroupResource<'_>, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(target, name, why)
    }

    /// 410: that state is no longer known.
    #[must_use]
    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// 413: more than we read.
    #[must_use]
    pub(crate) fn too_large(bytes_max: usize) -> Self {
        let message = format!("Request entity too large: limit is {bytes_max}");
        Self::new(413, "RequestEntityTooLarge", message)
    }

    /// 415: a body we cannot read.
    #[must_use]
    pub(crate) fn unsupported_media_type(accepted: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// 422: these fields are wrong. `kind` is the kind, not the resource.
    #[must_use]
    pub(crate) fn invalid(kind: GroupResource<'_>, name: &str, errors: &[FieldError]) -> Self {
        let mut seen = HashSet::new();
        let mut sentences: Vec<String> = Vec::new();
        for sentence in errors.iter().map(ToString::to_string) {
            if seen.insert(sentence.clone()) {
                sentences.push(sentence);
            }
        }
        let joined = match sentences.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let mut status = Self::new(422, "Invalid", format!("{kind} {name:?} is invalid: {joined}")).about(kind, name);
        if let Some(details) = &mut status.details {
            details.causes = errors.iter().map(Cause::from).collect();
        }
        status
    }

    /// 429: more requests at a time than we take.
    #[must_use]
    pub(crate) fn too_many_requests() -> Self {
        let mut status = Self::new(429, "TooManyRequests", "Too many requests, please try again later.");
        status.details = Some(Box::new(Details { retry_after_seconds: 1, ..Details::default() }));
        status
    }

    /// 504: it took too long. What was asked for may have been done.
    #[must_use]
    pub(crate) fn timeout() -> Self {
        let message = "Timeout: request did not complete within the allotted timeout";
        Self::new(504, "Timeout", message).with_empty_details()
    }

    /// 504: others that had to be asked took too long.
    #[must_use]
    pub(crate) fn timed_out() -> Self {
        Self::new(504, "Timeout", "Timeout: request did not complete within requested timeout").with_empty_details()
    }

    /// 500: our fault.
    #[must_use]
    pub(crate) fn internal(message: impl std::fmt::Display) -> Self {
        let mut status = Self::new(500, "InternalError", format!("Internal error occurred: {message}"));
        let cause = Cause { reason: "", message: message.to_string(), field: String::new() };
        status.details = Some(Box::new(Details { causes: vec![cause], ..Details::default() }));
        status
    }

    /// 500 without a reason, as upstream answers plain Go errors.
    #[must_use]
    pub(crate) fn plain(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    /// 504: the client knows a future we have not reached.
    #[must_use]
    pub(crate) fn future_version(asked: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        let mut status = Self::new(504, "Timeout", message);
        let cause = Cause {
            reason: "ResourceVersionTooLarge",
            message: "Too large resource version".to_owned(),
            field: String::new(),
        };
        status.details = Some(Box::new(Details { causes: vec![cause], retry_after_seconds: 1, ..Details::default() }));
        status
    }

    /// The answer as JSON.
    #[must_use]
    pub(crate) fn to_json(&self) -> Value {
        if let Some(answered) = self.details.as_ref().and_then(|details| details.answered.as_ref()) {
            return answered.clone();
        }
        let mut status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"});
        if self.code < 300 {
            status["status"] = "Success".into();
        }
        if !self.message.is_empty() {
            status["message"] = self.message.clone().into();
        }
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if let Some(details) = &self.details {
            if details.continue_token.is_empty() {
                status["details"] = details.to_json();
            } else {
                status["metadata"]["continue"] = details.continue_token.clone().into();
            }
        }
        if self.code != 200 {
            status["code"] = self.code.into();
        }
        status
    }
}

/// Returns the answer to a DELETE that does not show the object: success, and the object's name and uid.
#[must_use]
pub(crate) fn deleted(target: GroupResource<'_>, name: &str, uid: &str) -> Status {
    let mut status = Status::new(200, "", "").about(target, name);
    if let Some(details) = &mut status.details {
        uid.clone_into(&mut details.uid);
    }
    status
}

// === impl Details ===

impl Details {
    fn to_json(&self) -> Value {
        let mut json = Map::new();
        for (key, value) in [("name", &self.name), ("group", &self.group), ("kind", &self.kind), ("uid", &self.uid)] {
            if !value.is_empty() {
                json.insert(key.to_owned(), value.clone().into());
            }
        }
        if !self.causes.is_empty() {
            json.insert("causes".to_owned(), self.causes.iter().map(Cause::to_json).collect());
        }
        if self.retry_after_seconds > 0 {
            json.insert("retryAfterSeconds".to_owned(), self.retry_after_seconds.into());
        }
        Value::Object(json)
    }
}

// === impl Cause ===

impl Cause {
    fn to_json(&self) -> Value {
        let mut json = Map::new();
        for (key, value) in [("reason", self.reason), ("message", &self.message), ("field", &self.field)] {
            if !value.is_empty() {
                json.insert(key.to_owned(), value.into());
            }
        }
        Value::Object(json)
    }
}

impl From<&FieldError> for Cause {
    fn from(error: &FieldError) -> Self {
        Self { reason: error.kind.reason(), message: error.body(), field: error.path.to_string() }
    }
}

// === impl GroupResource ===

impl std::fmt::Display for GroupResource<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.resource)?;
        if self.group.is_empty() { Ok(()) } else { write!(f, ".{}", self.group) }
    }
}
