//! Impersonation: `kubectl --as`.
//!
//! 1. A request with any `Impersonate-…` header is never made as the sender: it names a user, or it is 400.
//!
//! Follows `apiserver/pkg/endpoints/filters/impersonation.go` of Kubernetes 1.37, which takes an empty user for none.

use http::HeaderMap;

use super::User;
use super::rbac::Attributes;
use crate::registry::Registry;
use crate::registry::query::decode;
use crate::status::Status;

const PREFIX: &str = "impersonate-";
const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA: &str = "impersonate-extra-";
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";
const ANONYMOUS: &str = "system:anonymous";

/// Returns the user that a request is made as, once its sender is authenticated.
///
/// # Errors
/// The sender may not impersonate this user, or names none.
pub(crate) fn impersonate(registry: &Registry, sender: User, headers: &HeaderMap) -> Result<User, Status> {
    if !headers.keys().any(|name| name.as_str().starts_with(PREFIX)) {
        return Ok(sender);
    }
    // A name may have any letters. Go uses the bytes; invalid UTF-8 becomes U+FFFD, as in Go's JSON.
    let all = |name: &str| -> Vec<String> {
        headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
    };
    let first = |name: &str| all(name).into_iter().next().unwrap_or_default();
    let name = first(USER);
    let uid = first(UID);
    let groups = all(GROUP);
    let extra = headers.keys().filter_map(|key| Some((decode(key.as_str().strip_prefix(EXTRA)?), all(key.as_str()))));
    let extra: Vec<(String, Vec<String>)> = extra.collect();
    if name.is_empty() {
        let groups: Vec<String> = groups.iter().map(|group| format!("{group:?}")).collect();
        let message = format!(
            "requested &user.DefaultInfo{{Name:\"\", UID:{uid:?}, Groups:[]string{{{}}}, Extra:map[string][]string(nil)}} \
             without impersonating a user name",
            groups.join(", ")
        );
        return Err(Status::bad_request(message));
    }
    let account = name.strip_prefix(SERVICE_ACCOUNT).and_then(|account| account.split_once(':'));
    let asked = match account {
        Some((namespace, name)) => ask("serviceaccounts", "", namespace, name),
        None => ask("users", "", "", &name),
    };
    let uid_asked = (!uid.is_empty()).then(|| ask("uids", "authentication.k8s.io", "", &uid));
    let extra_asked = extra.iter().flat_map(|(key, values)| {
        values.iter().map(|value| Attributes {
            subresource: key.clone(),
            ..ask("userextras", "authentication.k8s.io", "", value)
        })
    });
    let asked = std::iter::once(asked).chain(groups.iter().map(|group| ask("groups", "", "", group)));
    for wanted in asked.chain(uid_asked).chain(extra_asked) {
        registry.authorize(&sender, &wanted)?;
    }
    let mut groups = match account {
        Some((namespace, _)) if groups.is_empty() => {
            vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")]
        }
        _ => groups,
    };
    let everybody = if name == ANONYMOUS { "system:unauthenticated" } else { "system:authenticated" };
    if !groups.iter().any(|group| group == everybody) {
        groups.push(everybody.to_owned());
    }
    Ok(User { name, uid, groups, extra })
}

fn ask(resource: &str, group: &str, namespace: &str, name: &str) -> Attributes {
    Attributes {
        verb: "impersonate".to_owned(),
        namespace: namespace.to_owned(),
        group: group.to_owned(),
        resource: resource.to_owned(),
        name: name.to_owned(),
        ..Attributes::default()
    }
}
