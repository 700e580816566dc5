//! Diagnosis of credentials that a server rejects.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use kube::config::{AuthInfo, Kubeconfig};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use secrecy::ExposeSecret as _;
use steersman_base::Time;
use steersman_runtime::connection::{ConnectError, Origin};
use x509_cert::der::Decode;

/// The error in one sentence; if it is because something has expired, or is not valid yet, that, too.
pub(super) fn explain(error: &ConnectError, now: Time) -> String {
    let explained = match error {
        ConnectError::Unauthorized { origin: Origin::Kubeconfig { files, context }, .. } => user_of(files, context),
        _ => None,
    };
    match explained.and_then(|(user, folder)| problem(&user, &folder, now)) {
        Some(problem) => format!("{error}: {problem}"),
        None => error.to_string(),
    }
}

/// Returns the user of a context, and the base directory of relative paths. Unreadable files are reported elsewhere.
fn user_of(files: &str, context: &str) -> Option<(AuthInfo, PathBuf)> {
    let files: Vec<_> = files.split(", ").map(Path::new).collect();
    let read: Vec<_> = files.iter().filter_map(|file| Some((file, Kubeconfig::read_from(file).ok()?))).collect();
    let contexts = read.iter().flat_map(|(_, config)| &config.contexts);
    let user = contexts.filter(|named| named.name == context).find_map(|named| named.context.as_ref()?.user.clone())?;
    read.iter().find_map(|(file, config)| {
        let named = config.auth_infos.iter().find(|named| named.name == user)?;
        Some((named.auth_info.clone()?, file.parent().unwrap_or(Path::new("")).to_owned()))
    })
}

fn problem(user: &AuthInfo, folder: &Path, now: Time) -> Option<String> {
    let inline = user.client_certificate_data.as_ref().and_then(|data| STANDARD.decode(data).ok());
    let file = user.client_certificate.as_ref().map(|file| folder.join(file));
    let (certificate, what) = match (inline, &file) {
        (Some(pem), _) => (Some(pem), "the client certificate in it".to_owned()),
        (None, Some(file)) => (std::fs::read(file).ok(), format!("the client certificate {}", file.display())),
        (None, None) => (None, String::new()),
    };
    if let Some(pem) = certificate {
        let (from, until) = validity(&pem)?;
        return outside(&what, from, until, now);
    }
    let file = user.token_file.as_ref().map(|file| folder.join(file));
    let token = user.token.as_ref().map(|token| token.expose_secret().to_owned());
    let (token, what) = match (token, &file) {
        (Some(token), _) => (token, "the token in it".to_owned()),
        (None, Some(file)) => (std::fs::read_to_string(file).ok()?, format!("the token in {}", file.display())),
        (None, None) => return None,
    };
    let (from, until) = lifetime(token.trim())?;
    outside(&what, from, until, now)
}

fn outside(what: &str, from: Time, until: Time, now: Time) -> Option<String> {
    match () {
        () if now > until => Some(format!("{what} has expired, at {until}")),
        () if now < from => Some(format!("{what} is not valid before {from}; is the clock right?")),
        () => None,
    }
}

/// From when and until when the first certificate of a file is valid.
fn validity(pem: &[u8]) -> Option<(Time, Time)> {
    let der = CertificateDer::from_pem_slice(pem).ok()?;
    let certificate = x509_cert::Certificate::from_der(&der).ok()?;
    let validity = certificate.tbs_certificate().validity();
    let time = |time: x509_cert::time::Time| i64::try_from(time.to_unix_duration().as_secs()).ok().map(Time::from_unix);
    Some((time(validity.not_before)?, time(validity.not_after)?))
}

/// From when and until when a JSON web token is valid, if it is one.
fn lifetime(token: &str) -> Option<(Time, Time)> {
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    let claims: serde_json::Value = serde_json::from_slice(&claims).ok()?;
    let time = |name: &str| claims[name].as_i64().map(Time::from_unix);
    let until = time("exp")?;
    Some((time("nbf").unwrap_or(Time::from_unix(0)), until))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    fn certificate(from: i32, until: i32) -> String {
        let mut params = CertificateParams::default();
        (params.not_before, params.not_after) = (date_time_ymd(from, 1, 1), date_time_ymd(until, 1, 1));
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().pem()
    }

    fn token(claims: &str) -> String {
        format!("e30.{}.c2lnbmF0dXJl", URL_SAFE_NO_PAD.encode(claims))
    }

    /// The diagnosis of a user, at the beginning of 2026.
    fn explained(user: &str) -> Option<String> {
        let text = format!(
            "{{apiVersion: v1, kind: Config, contexts: [{{name: c, context: {{cluster: x, user: u}}}}], \
             users: [{{name: u, user: {{{user}}}}}]}}"
        );
        let folder = std::env::temp_dir().join(format!("steersman-credentials-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("old.crt"), certificate(2020, 2021)).unwrap();
        let file = folder.join("kubeconfig");
        std::fs::write(&file, text).unwrap();
        let origin = Origin::Kubeconfig { files: file.display().to_string(), context: "c".into() };
        let status = http::StatusCode::UNAUTHORIZED;
        let error = ConnectError::Unauthorized { server: "https://s".into(), origin, status };
        let explained = explain(&error, Time::from_unix(1_767_225_600));
        std::fs::remove_dir_all(&folder).unwrap();
        explained.strip_prefix(&error.to_string()).unwrap().strip_prefix(": ").map(str::to_owned)
    }

    #[test]
    fn what_has_expired_is_said_to_have_and_when() {
        let inline = |from, until| format!("client-certificate-data: {}", STANDARD.encode(certificate(from, until)));
        let check = |user: &str, want: Option<&str>| {
            let explained = explained(user);
            match want {
                Some(want) => assert!(
                    explained.as_deref().is_some_and(|explained| explained.contains(want)),
                    "{want}: {explained:?}"
                ),
                None => assert_eq!(explained, None, "{user}"),
            }
        };
        check(&inline(2020, 2021), Some("the client certificate in it has expired, at 2021-01-01T00:00:00Z"));
        check(&inline(2030, 2031), Some("is not valid before 2030-01-01T00:00:00Z; is the clock right?"));
        check(&inline(2020, 2030), None);
        check("client-certificate: old.crt", Some("old.crt has expired, at 2021-01-01T00:00:00Z"));
        check("client-certificate: nowhere.crt", None);
        check("client-certificate-data: bm90aGluZw==", None);
        check(
            &format!("token: {}", token(r#"{"exp":1609459200}"#)),
            Some("the token in it has expired, at 2021-01-01"),
        );
        check(&format!("token: {}", token(r#"{"exp":1924992000}"#)), None);
        check("token: opaque", None);
        check("username: nobody", None);
    }
}
