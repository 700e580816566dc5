//! Sources of projected volumes that have to do with certificates: the last part of `validateProjectionSources` of
//! `pkg/apis/core/validation/validation.go`.

use serde_json::Value;

use super::{free_path, unique_path};
use crate::field::{FieldError, Path};
use crate::kinds::certificates::{is_kubernetes_signer, name_problems, signer_name, user_annotations};
use crate::kinds::shared::check::{self, Errors, required};
use crate::kinds::shared::go;
use crate::kinds::shared::json::{is_set, text};

/// Checks a source of trust bundles: one by its name, or those of a signer.
pub(super) fn trust_bundle<'a>(
    source: &'a Value,
    paths: &mut Vec<&'a str>,
    volume_path: &Path,
    path: &Path,
    errors: &mut Errors,
) {
    let selector = &source["labelSelector"];
    match (source["name"].as_str(), source["signerName"].as_str()) {
        (Some(_), Some(_)) => {
            let shown = go::show("*ClusterTrustBundleProjection", source);
            errors.push(FieldError::invalid(path, shown, "only one of name and signerName may be used"));
        }
        (Some(name), None) => {
            let at = path.child("name");
            if name.is_empty() {
                errors.push(FieldError::required(&at, "must be a valid object name"));
            }
            let signer = name.rsplit_once(':').map(|(signer, _)| signer.replace(':', "/")).unwrap_or_default();
            for problem in name_problems(name, &signer) {
                let detail = format!("not a valid clustertrustbundlename: {problem}");
                errors.push(FieldError::invalid(&at, name, detail));
            }
            if is_set(selector) {
                let detail = "labelSelector must be unset if name is specified";
                errors.push(FieldError::invalid(&path.child("labelSelector"), check::shown_selector(selector), detail));
            }
        }
        (None, Some(signer)) => {
            let at = path.child("signerName");
            if signer.is_empty() {
                errors.push(FieldError::required(&at, "must be a valid signer name"));
            }
            signer_name(signer, &at, errors);
            check::label_selector(selector, &path.child("labelSelector"), errors);
        }
        (None, None) => errors.push(FieldError::required(path, "either name or signerName must be specified")),
    }
    required(&source["path"], &path.child("path"), errors);
    free_path(text(&source["path"]), &path.child("path"), errors);
    unique_path(text(&source["path"]), text(&source["path"]), paths, volume_path, errors);
}

/// Checks a source of a certificate for the pod.
pub(super) fn certificate<'a>(
    source: &'a Value,
    paths: &mut Vec<&'a str>,
    volume_path: &Path,
    path: &Path,
    errors: &mut Errors,
) {
    const KEYS: &[&str] = &["RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"];
    const PATHS: [&str; 3] = ["credentialBundlePath", "keyPath", "certificateChainPath"];
    const SECONDS_MIN: i64 = 60 * 60;
    const DAY: i64 = 24 * 60 * 60;
    let signer = text(&source["signerName"]);
    signer_name(signer, &path.child("signerName"), errors);
    user_annotations(&source["userAnnotations"], &path.child("userAnnotations"), errors);
    let key = text(&source["keyType"]);
    if !KEYS.contains(&key) {
        errors.push(FieldError::not_supported(&path.child("keyType"), key, KEYS));
    }
    if let Some(seconds) = source["maxExpirationSeconds"].as_i64() {
        let at = path.child("maxExpirationSeconds");
        let max = if is_kubernetes_signer(signer) { DAY } else { 91 * DAY };
        if seconds < SECONDS_MIN {
            let detail = format!("if provided, maxExpirationSeconds must be >= {SECONDS_MIN}");
            errors.push(FieldError::invalid(&at, seconds, detail));
        }
        if seconds > max {
            let detail = format!("if provided, maxExpirationSeconds must be <= {max}");
            errors.push(FieldError::invalid(&at, seconds, detail));
        }
    }
    let mut count = 0;
    for field in PATHS {
        let file = text(&source[field]);
        if !file.is_empty() {
            count += 1;
            free_path(file, &path.child(field), errors);
            unique_path(file, file, paths, volume_path, errors);
        }
    }
    if count == 0 {
        let detail = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath";
        errors.push(FieldError::required(path, detail));
    }
}
