//! Authentication: the identity of a client, from its credentials.

use std::collections::BTreeMap;

use http::request::Parts;
use http::{HeaderMap, HeaderValue, header};

use super::super::query::{Plus, decode};
use super::authorities::RequestHeader;
use super::{Guard, NotAuthentic, RequestHeaders, User};
use crate::serving::PeerCertificates;

impl Guard {
    /// Tries one authenticator after the other. A credential that one does not understand is left to the next; an error
    /// counts only if none succeeds.
    pub(super) async fn authenticate(&self, parts: &Parts) -> Result<User, NotAuthentic> {
        let mut problems = Vec::new();
        match self.by_certificate(parts) {
            Ok(Some(user)) => return Ok(user.authenticated()),
            Ok(None) => {}
            Err(mut errors) => problems.append(&mut errors),
        }
        if let (Some(client), Some(token)) = (&self.0.options.authentication, bearer_token(&parts.headers)) {
            match self.review_token(client, token).await {
                Ok(user) => return Ok(user.authenticated()),
                Err(error) => problems.push(error),
            }
        }
        if problems.is_empty() {
            return Ok(User::anonymous());
        }
        let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
        Err(NotAuthentic(problems.join("; ")))
    }

    /// Authenticates by certificate, and a front proxy's client by the headers.
    fn by_certificate(&self, parts: &Parts) -> Result<Option<User>, Vec<NotAuthentic>> {
        let Some(shown) = parts.extensions.get::<PeerCertificates>() else { return Ok(None) };
        let now = self.0.options.clock.now();
        let authorities = self.0.authorities.read();
        let mut problems = Vec::new();
        if let Some(proxy) = &authorities.request_header {
            match by_proxy(proxy, shown, &parts.headers, now) {
                Ok(Some(user)) => return Ok(Some(user)),
                Ok(None) => {}
                Err(error) => problems.push(error),
            }
        }
        if let Some(authority) = &authorities.client_ca {
            match authority.verify(shown, now) {
                // A certificate without a name identifies nobody.
                Ok(identity) if identity.common_name.is_empty() => {}
                Ok(identity) => {
                    let name = identity.common_name;
                    let groups = identity.organizations;
                    let uid = identity.uid.unwrap_or_default();
                    return Ok(Some(User { name, uid, groups, extra: BTreeMap::new() }));
                }
                Err(error) => problems.push(NotAuthentic(error.to_string())),
            }
        }
        if problems.is_empty() { Ok(None) } else { Err(problems) }
    }
}

/// Returns the user that a front proxy names, if the client is a front proxy.
fn by_proxy(
    proxy: &RequestHeader,
    shown: &PeerCertificates,
    headers: &HeaderMap,
    now: steersman_base::Time,
) -> Result<Option<User>, NotAuthentic> {
    let identity = proxy.authority.verify(shown, now).map_err(|error| NotAuthentic(error.to_string()))?;
    let allowed = &proxy.headers.allowed_names;
    if !allowed.is_empty() && !allowed.contains(&identity.common_name) {
        let name = identity.common_name;
        return Err(NotAuthentic(format!("x509: subject with cn={name} is not in the allowed list")));
    }
    Ok(user_in_headers(&proxy.headers, headers))
}

/// Returns the user in the headers.
pub(super) fn user_in_headers(names: &RequestHeaders, headers: &HeaderMap) -> Option<User> {
    let texts = |name: &String| headers.get_all(name.as_str()).iter().map(text).filter(|value| !value.is_empty());
    // The first value of each header, as Go's `Header.Get`.
    let first = |names: &[String]| names.iter().find_map(|name| texts(name).next());
    let name = first(&names.username)?;
    let groups = names.group.iter().flat_map(texts).collect();
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for prefix in &names.extra_prefix {
        let prefix = prefix.to_ascii_lowercase();
        for (header, value) in headers {
            let Some(key) = header.as_str().strip_prefix(&prefix) else { continue };
            extra.entry(decode(key, Plus::Literal)).or_default().push(text(value));
        }
    }
    Some(User { name, uid: first(&names.uid).unwrap_or_default(), groups, extra })
}

/// Returns the text of a header. Bytes that are not UTF-8 become U+FFFD; the header is never taken for absent, because
/// then the proxy itself would be authenticated.
fn text(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

/// Returns the token of `Authorization: Bearer …`.
pub(super) fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let header = headers.get(header::AUTHORIZATION)?.to_str().ok()?.trim();
    let mut parts = header.splitn(3, ' ');
    let scheme = parts.next()?;
    let token = parts.next()?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}
