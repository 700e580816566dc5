//! The user that processes run as.

use super::{Finding, Pod, found, named, names_of, setters};

/// `check_runAsNonRoot.go`
pub(super) fn non_root(pod: Pod<'_>) -> Option<Finding> {
    const REASON: &str = "runAsNonRoot != true";
    let of_pod = &pod.spec["securityContext"]["runAsNonRoot"];
    let is_pod = *of_pod == false;
    let bad = names_of(pod, |container| container["securityContext"]["runAsNonRoot"] == false);
    if is_pod || !bad.is_empty() {
        return found(REASON, format!("{} must not set securityContext.runAsNonRoot=false", setters(is_pod, &bad)));
    }
    if *of_pod == true {
        return None;
    }
    let silent = names_of(pod, |container| !container["securityContext"]["runAsNonRoot"].is_boolean());
    if silent.is_empty() {
        return None;
    }
    found(REASON, format!("pod or {} must set securityContext.runAsNonRoot=true", named(&silent)))
}

/// `check_runAsUser.go`
pub(super) fn not_user_0(pod: Pod<'_>) -> Option<Finding> {
    let is_pod = pod.spec["securityContext"]["runAsUser"] == 0;
    let bad = names_of(pod, |container| container["securityContext"]["runAsUser"] == 0);
    if !is_pod && bad.is_empty() {
        return None;
    }
    found("runAsUser=0", format!("{} must not set runAsUser=0", setters(is_pod, &bad)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::check;
    use super::*;

    fn spec(of_pod: Value, contexts: &[Value]) -> Value {
        let containers = contexts.iter().zip(["a", "b"]);
        let containers: Vec<Value> =
            containers.map(|(context, name)| json!({"name": name, "securityContext": context})).collect();
        let mut spec = json!({ "containers": containers });
        spec["securityContext"] = of_pod;
        spec
    }

    #[test]
    fn nobody_is_root() {
        let [yes, no] = [true, false].map(|it| json!({"runAsNonRoot": it}));
        check(
            non_root,
            &[
                (spec(yes.clone(), &[Value::Null, yes.clone()]), None),
                (spec(Value::Null, &[yes.clone(), yes.clone()]), None),
                (
                    spec(Value::Null, &[yes.clone(), json!({})]),
                    Some("runAsNonRoot != true (pod or container \"b\" must set securityContext.runAsNonRoot=true)"),
                ),
                (
                    spec(no.clone(), &[yes.clone(), yes.clone()]),
                    Some("runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false)"),
                ),
                (
                    spec(yes, &[no, Value::Null]),
                    Some("runAsNonRoot != true (container \"a\" must not set securityContext.runAsNonRoot=false)"),
                ),
            ],
        );
        let user = |user: i64| json!({"runAsUser": user});
        check(
            not_user_0,
            &[
                (spec(user(1), &[user(2), Value::Null]), None),
                (
                    spec(user(0), &[user(0), user(0)]),
                    Some("runAsUser=0 (pod and containers \"a\", \"b\" must not set runAsUser=0)"),
                ),
            ],
        );
    }
}
