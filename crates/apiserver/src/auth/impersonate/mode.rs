//! The ways to impersonate somebody, and what each asks the authorizer.
//!
//! Follows `mode.go` of `apiserver/pkg/endpoints/filters/impersonation` of Kubernetes 1.37.

use steersman_base::validation::{dns1123_label, dns1123_subdomain};

use crate::auth::User;
use crate::auth::rbac::{Attributes, Decision, MASTERS};
use crate::field::{Errors, Path};
use crate::kinds::shared::check;
use crate::status::Status;

const NODE: &str = "system:node:";
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";
const ANONYMOUS: &str = "system:anonymous";
const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The extra of a service account's token that names the node of its pod.
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";
const REVIEWS: &str = "authentication.k8s.io";
/// The number of groups, or of values, from which a right to all of them is asked for first.
const MANY: usize = 4;

/// A way to impersonate somebody. In the constrained ones, the verb names the mode: `impersonate:user-info`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// A service account is the node that its pod runs on.
    AssociatedNode,
    /// Any node.
    ArbitraryNode,
    /// A service account.
    ServiceAccount,
    /// Anybody else, with groups and whatever there is to a user.
    UserInfo,
    /// Anybody, and whatever they may do.
    Legacy,
}

/// The authorizer: refuses what the sender may not do.
type Ask<'a> = dyn Fn(&Attributes) -> Result<(), Status> + 'a;

// === impl Mode ===

impl Mode {
    /// All modes, in the order in which they are tried.
    pub(super) const ALL: [Self; 5] =
        [Self::AssociatedNode, Self::ArbitraryNode, Self::ServiceAccount, Self::UserInfo, Self::Legacy];

    const fn name(self) -> &'static str {
        match self {
            Self::AssociatedNode => "associated-node",
            Self::ArbitraryNode => "arbitrary-node",
            Self::ServiceAccount => "serviceaccount",
            Self::UserInfo => "user-info",
            Self::Legacy => "",
        }
    }

    /// Whether this user can be impersonated so.
    pub(super) fn fits(self, wanted: &User, sender: &User) -> bool {
        let is_only_name = wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
        let node = node(&wanted.name);
        match self {
            Self::AssociatedNode => {
                let mut own = sender.extra.iter().filter(|(key, _)| key == NODE_NAME);
                let is_own = own.next().is_some_and(|(_, values)| matches!(&values[..], [own] if Some(&**own) == node));
                is_only_name && node.is_some() && is_own && service_account(&sender.name).is_some()
            }
            Self::ArbitraryNode => is_only_name && node.is_some(),
            Self::ServiceAccount => is_only_name && service_account(&wanted.name).is_some(),
            Self::UserInfo => node.is_none() && service_account(&wanted.name).is_none(),
            Self::Legacy => true,
        }
    }

    /// Returns the user that the sender becomes.
    ///
    /// # Errors
    /// The sender has not all the rights of this mode.
    pub(super) fn check(
        self,
        wanted: &User,
        request: &Attributes,
        sender: &User,
        ask: &Ask<'_>,
    ) -> Result<User, Status> {
        if self != Self::Legacy {
            let verb = format!("impersonate-on:{}:{}", self.name(), request.verb);
            ask(&Attributes { verb, ..request.clone() })?;
        }
        ask(&self.asked_for_name(&wanted.name))?;
        if !wanted.uid.is_empty() {
            ask(&self.asked("uids", REVIEWS, &wanted.uid))?;
        }
        self.check_groups(wanted, sender, ask)?;
        self.check_extra(wanted, sender, ask)?;
        Ok(self.user(wanted))
    }

    fn check_groups(self, wanted: &User, sender: &User, ask: &Ask<'_>) -> Result<(), Status> {
        let asked = |group: &str| self.asked("groups", self.group(), group);
        if self == Self::UserInfo {
            if wanted.groups.iter().any(String::is_empty) {
                return Err(refused(&asked(""), sender, "impersonating the empty string group is not allowed"));
            }
            if wanted.groups.iter().any(|group| group == MASTERS) {
                return Err(refused(&asked(MASTERS), sender, "impersonating the system:masters group is not allowed"));
            }
            if wanted.groups.len() >= MANY && ask(&asked("*")).is_ok() {
                return Ok(());
            }
        }
        wanted.groups.iter().try_for_each(|group| ask(&asked(group)))
    }

    fn check_extra(self, wanted: &User, sender: &User, ask: &Ask<'_>) -> Result<(), Status> {
        let asked = |key: &str, value: &str| Attributes {
            subresource: key.to_owned(),
            ..self.asked("userextras", REVIEWS, value)
        };
        let count: usize = wanted.extra.iter().map(|(_, values)| values.len()).sum();
        if self == Self::UserInfo {
            if let Some(why) = wanted.extra.iter().find_map(|(key, values)| wrong_extra(key, values)) {
                return Err(refused(&asked("", ""), sender, &why));
            }
            if count >= MANY && ask(&asked("*", "*")).is_ok() {
                return Ok(());
            }
        }
        let mut all = wanted.extra.iter().flat_map(|(key, values)| values.iter().map(move |value| (key, value)));
        all.try_for_each(|(key, value)| ask(&asked(key, value)))
    }

    fn asked_for_name(self, name: &str) -> Attributes {
        if let Some((namespace, name)) = service_account(name) {
            let namespace = namespace.to_owned();
            return Attributes { namespace, ..self.asked("serviceaccounts", self.group(), name) };
        }
        match (self, node(name)) {
            // Who may be the node of their pod may be that of any.
            (Self::AssociatedNode, Some(_)) => self.asked("nodes", self.group(), "*"),
            (Self::ArbitraryNode, Some(name)) => self.asked("nodes", self.group(), name),
            _ => self.asked("users", self.group(), name),
        }
    }

    fn asked(self, resource: &str, group: &str, name: &str) -> Attributes {
        let verb = match self {
            Self::Legacy => "impersonate".to_owned(),
            constrained => format!("impersonate:{}", constrained.name()),
        };
        let [group, resource, name] = [group, resource, name].map(str::to_owned);
        Attributes { verb, group, resource, name, ..Attributes::default() }
    }

    /// The API group of users and groups.
    const fn group(self) -> &'static str {
        if matches!(self, Self::Legacy) { "" } else { REVIEWS }
    }

    /// The user with the groups that everybody like this has.
    fn user(self, wanted: &User) -> User {
        let mut user = wanted.clone();
        if user.groups.is_empty() {
            if let Some((namespace, _)) = service_account(&user.name) {
                user.groups = vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
            } else if self != Self::Legacy && node(&user.name).is_some() {
                user.groups = vec!["system:nodes".to_owned()];
            }
        }
        let has = |group: &str| user.groups.iter().any(|it| it == group);
        let everybody = match &*user.name {
            ANONYMOUS => Some(UNAUTHENTICATED),
            _ => (!has(UNAUTHENTICATED)).then_some(AUTHENTICATED),
        };
        if let Some(group) = everybody.filter(|group| !has(group)) {
            user.groups.push(group.to_owned());
        }
        user
    }
}

fn refused(asked: &Attributes, sender: &User, why: &str) -> Status {
    asked.refusal(sender, &Decision { is_allowed: false, reason: why.to_owned() })
}

/// Returns what is wrong with an extra in a constrained mode.
fn wrong_extra(key: &str, values: &[String]) -> Option<String> {
    if key.is_empty() {
        return Some("impersonating the empty string key in extra is not allowed".to_owned());
    }
    let mut errors = Errors::default();
    check::domain_prefixed_path(key, &Path::new("extra").child("key"), &mut errors);
    if let Some(error) = errors.first() {
        return Some(format!("impersonating an invalid key in extra is not allowed: {error}"));
    }
    if key.chars().any(char::is_uppercase) {
        return Some(format!("impersonating a non-lowercase key in extra is not allowed: {key:?}"));
    }
    if values.is_empty() {
        return Some("impersonating empty values in extra is not allowed".to_owned());
    }
    let is_empty = values.iter().any(String::is_empty);
    is_empty.then(|| "impersonating the empty string value in extra is not allowed".to_owned())
}

/// Returns the node that a user is.
fn node(user: &str) -> Option<&str> {
    user.strip_prefix(NODE).filter(|name| dns1123_subdomain(name).is_empty())
}

/// Returns namespace and name of the service account that a user is.
fn service_account(user: &str) -> Option<(&str, &str)> {
    let account = user.strip_prefix(SERVICE_ACCOUNT)?.split_once(':')?;
    let (namespace, name) = account;
    (dns1123_label(namespace).is_empty() && dns1123_subdomain(name).is_empty()).then_some(account)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::auth::rbac::escalation::quoted;

    fn user(name: &str, groups: &[&str]) -> User {
        User { name: name.to_owned(), groups: groups.iter().map(|it| (*it).to_owned()).collect(), ..User::default() }
    }

    /// Asks as somebody with these rights, and returns the groups, or what was asked last.
    fn tried(mode: Mode, wanted: &User, may: &[&str]) -> Result<String, String> {
        let sender = user("robot", &[]);
        let request = Attributes { verb: "list".into(), resource: "pods".into(), ..Attributes::default() };
        let last = RefCell::new(String::new());
        let ask = |asked: &Attributes| {
            let Attributes { verb, namespace, group, resource, subresource, name, .. } = asked;
            let text = format!("{verb} {group}/{resource} {namespace}{subresource}:{name}");
            let is_allowed = may.contains(&&*text);
            *last.borrow_mut() = text;
            if is_allowed { Ok(()) } else { Err(Status::unauthorized()) }
        };
        let user = mode.check(wanted, &request, &sender, &ask);
        user.map(|user| quoted(user.groups.iter().map(String::as_str))).map_err(|status| match status.code {
            401 => last.borrow().clone(),
            _ => status.message,
        })
    }

    #[test]
    fn each_user_has_its_modes() {
        let account = "system:serviceaccount:a:b";
        let rows: &[(User, &[Mode])] = &[
            (user("jane", &[]), &[Mode::UserInfo, Mode::Legacy]),
            (user("jane", &["g"]), &[Mode::UserInfo, Mode::Legacy]),
            (user(account, &[]), &[Mode::ServiceAccount, Mode::Legacy]),
            (user(account, &["g"]), &[Mode::Legacy]),
            (user("system:serviceaccount:a", &[]), &[Mode::UserInfo, Mode::Legacy]),
            (user("system:serviceaccount:A:b", &[]), &[Mode::UserInfo, Mode::Legacy]),
            (user("system:node:n", &[]), &[Mode::AssociatedNode, Mode::ArbitraryNode, Mode::Legacy]),
            (user("system:node:m", &[]), &[Mode::ArbitraryNode, Mode::Legacy]),
            (user("system:node:m", &["g"]), &[Mode::Legacy]),
            (user("system:node:M", &[]), &[Mode::UserInfo, Mode::Legacy]),
        ];
        let agent = User {
            extra: vec![(NODE_NAME.to_owned(), vec!["n".to_owned()])],
            ..user("system:serviceaccount:x:y", &[])
        };
        for (wanted, want) in rows {
            let fit: Vec<Mode> = Mode::ALL.into_iter().filter(|mode| mode.fits(wanted, &agent)).collect();
            assert_eq!(&fit, want, "{wanted:?}");
        }
        let nobody = User { name: "jane".to_owned(), ..agent };
        assert!(!Mode::AssociatedNode.fits(&user("system:node:n", &[]), &nobody));
    }

    #[test]
    fn a_constrained_mode_takes_a_right_to_the_user_and_one_to_the_request() {
        let on = |mode: &str| format!("impersonate-on:{mode}:list /pods :");
        let rows = [
            (Mode::UserInfo, user("jane", &[]), "user-info", "impersonate:user-info authentication.k8s.io/users :jane"),
            (
                Mode::ServiceAccount,
                user("system:serviceaccount:a:b", &[]),
                "serviceaccount",
                "impersonate:serviceaccount authentication.k8s.io/serviceaccounts a:b",
            ),
            (
                Mode::ArbitraryNode,
                user("system:node:n", &[]),
                "arbitrary-node",
                "impersonate:arbitrary-node authentication.k8s.io/nodes :n",
            ),
            (
                Mode::AssociatedNode,
                user("system:node:n", &[]),
                "associated-node",
                "impersonate:associated-node authentication.k8s.io/nodes :*",
            ),
        ];
        for (mode, wanted, name, be) in rows {
            let on = on(name);
            assert_eq!(tried(mode, &wanted, &[be]), Err(on.clone()), "{mode:?}");
            assert_eq!(tried(mode, &wanted, &[&on]), Err(be.to_owned()), "{mode:?}");
            assert!(tried(mode, &wanted, &[&on, be]).is_ok(), "{mode:?}");
        }
        assert_eq!(
            tried(Mode::Legacy, &user("jane", &["g"]), &["impersonate /users :jane"]),
            Err("impersonate /groups :g".to_owned())
        );
    }

    #[test]
    fn nobody_becomes_a_master_by_a_constrained_mode() {
        let on = "impersonate-on:user-info:list /pods :";
        let be = "impersonate:user-info authentication.k8s.io/users :jane";
        let group = |name: &str| format!("impersonate:user-info authentication.k8s.io/groups :{name}");
        let masters = tried(Mode::UserInfo, &user("jane", &["system:masters"]), &[on, be, &group("system:masters")]);
        let why = masters.unwrap_err();
        assert!(why.ends_with("impersonating the system:masters group is not allowed"), "{why}");
        let four = user("jane", &["a", "b", "c", "d"]);
        assert!(tried(Mode::UserInfo, &four, &[on, be, &group("*")]).is_ok());
        assert_eq!(tried(Mode::UserInfo, &four, &[on, be, &group("a")]), Err(group("b")));
        assert_eq!(tried(Mode::UserInfo, &user("jane", &["a"]), &[on, be, &group("*")]), Err(group("a")));
        let mut extra = user("jane", &[]);
        extra.extra = vec![("team".to_owned(), vec!["red".to_owned()])];
        let why = tried(Mode::UserInfo, &extra, &[on, be]).unwrap_err();
        assert!(why.contains("extra.key: Invalid value: \"team\": must be a domain-prefixed path"), "{why}");
        extra.extra = vec![("a.b/team".to_owned(), vec!["red".to_owned()])];
        let of_extra = "impersonate:user-info authentication.k8s.io/userextras a.b/team:red";
        assert_eq!(tried(Mode::UserInfo, &extra, &[on, be]), Err(of_extra.to_owned()));
        assert!(tried(Mode::UserInfo, &extra, &[on, be, of_extra]).is_ok());
    }

    #[test]
    fn a_user_has_the_groups_of_its_kind() {
        let rows = [
            (Mode::UserInfo, user("jane", &[]), "[\"system:authenticated\"]"),
            (Mode::UserInfo, user("jane", &["g"]), "[\"g\" \"system:authenticated\"]"),
            (Mode::Legacy, user("jane", &[UNAUTHENTICATED]), "[\"system:unauthenticated\"]"),
            (Mode::Legacy, user(ANONYMOUS, &[]), "[\"system:unauthenticated\"]"),
            (Mode::ArbitraryNode, user("system:node:n", &[]), "[\"system:nodes\" \"system:authenticated\"]"),
            (Mode::Legacy, user("system:node:n", &[]), "[\"system:authenticated\"]"),
            (
                Mode::ServiceAccount,
                user("system:serviceaccount:a:b", &[]),
                "[\"system:serviceaccounts\" \"system:serviceaccounts:a\" \"system:authenticated\"]",
            ),
        ];
        for (mode, wanted, want) in rows {
            assert_eq!(quoted(mode.user(&wanted).groups.iter().map(String::as_str)), want, "{mode:?} {wanted:?}");
        }
    }
}
