//! Service accounts, their tokens, and what every namespace has.

use steersman_base::ObjectKey;

use super::{ACCOUNT, Case, Findings, ROOT_CA, Rest, TOKEN, Verdict};
use crate::world::Object;

/// The token controller "watches for ServiceAccount deletion and deletes all corresponding ServiceAccount token
/// Secrets." (website: Managing Service Accounts)
///
/// Checked when the token controller deletes a secret: its account is deleted, or has another uid.
/// Judged against the store; staleness excuses an account that was not there at some time by what was shown.
pub(super) fn tokens_go_only_with_their_account(case: &Case<'_>) -> Verdict {
    let Some(secret) = case.deleted().filter(|_| case.by(&[TOKEN])) else { return Verdict::NotMine };
    let Some(is) = secret.secret() else { return Verdict::NotMine };
    let key = ObjectKey { namespace: secret.key.namespace.clone(), name: is.account.clone() };
    let is_its = |account: &Object| is.account_uid.as_ref().is_none_or(|uid| *uid == account.uid);
    let at_store =
        !is.account.is_empty() && !case.world.get("serviceaccounts", &key).is_some_and(|account| is_its(account));
    let window = case.window();
    let as_shown = || {
        let versions = window.of_key("serviceaccounts", &key);
        !is.account.is_empty() && versions.is_none_or(|versions| !versions.always(is_its))
    };
    Verdict::judge(at_store, as_shown, || {
        format!("{secret} is deleted, and its service account {} is there", is.account)
    })
}

/// The namespaces that are there to stay.
fn active<'a>(rest: &Rest<'a>) -> impl Iterator<Item = &'a Object> {
    rest.world.all("namespaces").filter(|namespace| !namespace.is_terminating()).map(|namespace| &**namespace)
}

/// "A ServiceAccount controller manages the ServiceAccounts inside namespaces, and ensures a ServiceAccount named
/// "default" exists in every active namespace." (website: Managing Service Accounts)
///
/// At rest.
pub(super) fn every_namespace_has_its_default_account(rest: &Rest<'_>, found: &mut Findings) {
    for namespace in active(rest).filter(|_| rest.options.runs(ACCOUNT)) {
        let is_there = rest.world.get("serviceaccounts", &ObjectKey::new(&namespace.key.name, "default")).is_some();
        found.expect(is_there, || format!("{namespace} has no service account \"default\""));
    }
}

/// "Configure the `kube-controller-manager` to publish a ConfigMap named `kube-root-ca.crt` to every namespace."
/// (website: Feature Gates (removed), RootCAConfigMap) What is in it follows `publisher.go` of Kubernetes 1.37.
///
/// At rest.
pub(super) fn every_namespace_has_the_root_certificate(rest: &Rest<'_>, found: &mut Findings) {
    for namespace in active(rest).filter(|_| rest.options.runs(ROOT_CA)) {
        let key = ObjectKey::new(&namespace.key.name, "kube-root-ca.crt");
        let published = rest.world.raw("configmaps", &key).and_then(|map| map["data"].as_object());
        let is_right = published.is_some_and(|data| data.len() == 1 && data.contains_key("ca.crt"));
        found
            .expect(is_right, || format!("{namespace} has no ConfigMap kube-root-ca.crt with ca.crt and nothing else"));
    }
}

/// The token controller "watches for ServiceAccount token Secret addition, and ensures the referenced ServiceAccount
/// exists, and adds a token to the Secret if needed." (website: Managing Service Accounts)
///
/// At rest: a secret that names an account has a token if the account exists, and is deleted if it does not.
pub(super) fn tokens_follow_their_accounts(rest: &Rest<'_>, found: &mut Findings) {
    if !rest.options.runs(TOKEN) {
        return;
    }
    for object in rest.world.all("secrets").filter(|object| !object.is_terminating()) {
        let Some(secret) = object.secret().filter(|secret| !secret.account.is_empty()) else { continue };
        let key = ObjectKey { namespace: object.key.namespace.clone(), name: secret.account.clone() };
        let account = rest.world.get("serviceaccounts", &key).filter(|account| !account.is_terminating());
        let is_its = account.is_some_and(|account| secret.account_uid.as_ref().is_none_or(|uid| *uid == account.uid));
        found.expect(is_its && secret.has_token, || {
            let what = if is_its { "has no token" } else { "is left of an account that is gone" };
            format!("{object} for service account {} {what}", secret.account)
        });
    }
}
