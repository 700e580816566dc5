//! Impersonation: `kubectl --as`.
//!
//! 1. A request with any `Impersonate-…` header is never made as the sender: it names a user, or it is 400.
//! 2. The sender needs the rights of one [mode](Mode): two for a constrained one (to be this user, and to do this as one), or the
//!    verb `impersonate`, which allows whatever the user may do. If no mode allows it, the refusal of the first is the answer.
//! 3. In the constrained modes nobody becomes a member of `system:masters`.
//!
//! Follows `apiserver/pkg/endpoints/filters/impersonation` of Kubernetes 1.37, which takes an empty user for none, and keeps what it has
//! allowed for ten seconds.

mod mode;

use http::HeaderMap;

use super::User;
use super::rbac::Attributes;
use crate::registry::Registry;
use crate::registry::query::decode;
use crate::status::Status;
use mode::Mode;

const PREFIX: &str = "impersonate-";
const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA: &str = "impersonate-extra-";

/// Returns the user that a request is made as, once its sender is authenticated; `request` is what is asked for.
///
/// # Errors
/// The sender may not impersonate this user, or names none.
pub(crate) fn impersonate(
    registry: &Registry,
    sender: User,
    headers: &HeaderMap,
    request: impl FnOnce() -> Attributes,
) -> Result<User, Status> {
    if !headers.keys().any(|name| name.as_str().starts_with(PREFIX)) {
        return Ok(sender);
    }
    let wanted = wanted(headers)?;
    let request = request();
    let mut first = None;
    for mode in Mode::ALL.into_iter().filter(|mode| mode.fits(&wanted, &sender)) {
        match mode.check(&wanted, &request, &sender, &|asked| registry.authorize(&sender, asked)) {
            Ok(user) => return Ok(user),
            Err(status) => drop(first.get_or_insert(status)),
        }
    }
    // The last mode fits everybody.
    Err(first.unwrap_or_else(|| Status::internal("all impersonation modes failed")))
}

/// Returns the user that the headers name.
fn wanted(headers: &HeaderMap) -> Result<User, Status> {
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
    Ok(User { name, uid, groups, extra })
}
