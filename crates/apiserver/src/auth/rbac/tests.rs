//! Rules, subjects and reasons.

use serde_json::{Value, json};
use steersman_base::{Clock, Time};

use super::{Attributes, Decision, decide, rules};
use crate::auth::User;
use crate::{ApiServer, Options};

#[test]
fn a_rule_allows_what_it_names() {
    let wanted = |text: &str| {
        let mut words = text.split(' ');
        let mut next = || words.next().unwrap_or_default().to_owned();
        let verb = next();
        let group = next();
        let resource = next();
        let name = next();
        let (resource, part) = resource.split_once('/').map_or((resource.as_str(), ""), |parts| parts);
        Attributes {
            verb,
            group: group.replace("core", ""),
            resource: resource.to_owned(),
            subresource: part.to_owned(),
            name,
            ..Attributes::default()
        }
    };
    let rule = json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods", "pods/log"]});
    let every = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]});
    let scales = json!({"verbs": ["update"], "apiGroups": ["apps"], "resources": ["*/scale"]});
    let one = json!({"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["mine"]});
    let paths = json!({"verbs": ["get"], "nonResourceURLs": ["/metrics", "/healthz/*"]});
    for (rule, text, want) in [
        (&rule, "get core pods x", true),
        (&rule, "list core pods", false),
        (&rule, "get apps pods", false),
        (&rule, "get core pods/log x", true),
        (&rule, "get core pods/status x", false),
        (&every, "patch apps deployments/scale x", true),
        (&scales, "update apps statefulsets/scale x", true),
        (&scales, "update apps statefulsets x", false),
        (&one, "get core secrets mine", true),
        (&one, "get core secrets yours", false),
        (&one, "list core secrets", false),
        (&paths, "get core pods", false),
    ] {
        assert_eq!(wanted(text).is_allowed_by(rule), want, "{text} by {rule}");
    }
    for (path, want) in [("/metrics", true), ("/metrics/x", false), ("/healthz/ping", true), ("/healthz", false)] {
        let wanted = Attributes { verb: "get".into(), path: Some(path.into()), ..Attributes::default() };
        assert_eq!(wanted.is_allowed_by(&paths), want, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_roles_of_a_new_cluster_hold() {
    let server = ApiServer::new(Options { clock: Clock::starting_at(Time::from_unix(0)), ..Options::default() });
    let user = |name: &str, groups: &[&str]| User {
        name: name.to_owned(),
        groups: groups.iter().map(|group| (*group).to_owned()).collect(),
        ..User::default()
    };
    let wanted = |verb: &str, group: &str, resource: &str, namespace: &str| Attributes {
        verb: verb.to_owned(),
        group: group.to_owned(),
        resource: resource.to_owned(),
        namespace: namespace.to_owned(),
        ..Attributes::default()
    };
    let controller = "system:serviceaccount:kube-system:replicaset-controller";
    for (user, wanted, want, reason) in [
        (user("a", &["system:masters"]), wanted("get", "", "x", ""), true, ""),
        (user("jane", &["system:authenticated"]), wanted("get", "", "pods", "default"), false, ""),
        (
            user(controller, &[]),
            wanted("create", "", "pods", "default"),
            true,
            "RBAC: allowed by ClusterRoleBinding \"system:controller:replicaset-controller\" of ClusterRole \
             \"system:controller:replicaset-controller\" to ServiceAccount \"replicaset-controller/kube-system\"",
        ),
        (user(controller, &[]), wanted("create", "", "secrets", "default"), false, ""),
        (
            user("system:kube-controller-manager", &[]),
            wanted("get", "coordination.k8s.io", "leases", "kube-system"),
            true,
            "RBAC: allowed by RoleBinding \"system::leader-locking-kube-controller-manager/kube-system\" of Role \
             \"system::leader-locking-kube-controller-manager\" to User \"system:kube-controller-manager\"",
        ),
        (
            user("system:kube-controller-manager", &[]),
            wanted("get", "coordination.k8s.io", "leases", "default"),
            false,
            "",
        ),
    ] {
        let decision = decide(&server.registry, &user, &wanted);
        assert_eq!(decision, Decision { is_allowed: want, reason: reason.to_owned() }, "{} {wanted:?}", user.name);
    }
    let (resources, paths) = rules(&server.registry, &user("jane", &["system:authenticated"]), "default");
    assert!(
        resources
            .iter()
            .any(|rule| rule["resources"] == json!(["selfsubjectaccessreviews", "selfsubjectrulesreviews"]))
    );
    assert!(paths.iter().any(|rule: &Value| rule["nonResourceURLs"].as_array().is_some_and(|urls| !urls.is_empty())));
}
