//! OpenAPI beside kube-apiserver's, and as kubectl reads it.

use serde_json::Value;

use crate::Kubectl;
use crate::compare::{Request, send};
use crate::frame::clients;

/// What a client reads of an operation.
const OF_OPERATIONS: [&str; 5] =
    ["operationId", "description", "tags", "x-kubernetes-action", "x-kubernetes-group-version-kind"];

#[tokio::test]
async fn openapi_names_operations_as_kube_apiserver() {
    let [theirs, ours] = clients().await;
    let path = "/openapi/v2".to_owned();
    let get = Request { method: "GET", path, content_type: "application/json", body: Value::Null };
    let (_, theirs) = send(&theirs, &get).await;
    let (_, ours) = send(&ours, &get).await;
    let mut different = Vec::new();
    let mut compared = 0;
    for (path, operations) in ours["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap().iter().filter(|(name, _)| *name != "parameters") {
            let other = &theirs["paths"][path][method];
            compared += 1;
            for field in OF_OPERATIONS {
                if operation[field] != other[field] {
                    different.push(format!("{method} {path} {field}: {} {}", operation[field], other[field]));
                }
            }
            let codes = |operation: &Value| -> Vec<String> {
                operation["responses"].as_object().into_iter().flatten().map(|(code, _)| code.clone()).collect()
            };
            if codes(operation) != codes(other) {
                different.push(format!("{method} {path} responses"));
            }
        }
    }
    println!("{} of {compared} operations differ\n{}", different.len(), different.join("\n"));
    assert!(compared > 600, "{compared} operations");
    assert!(different.is_empty(), "{} of {compared} operations differ:\n{}", different.len(), different.join("\n"));
}

/// kubectl explains from the documents what it explains from kube-apiserver's.
#[tokio::test]
async fn kubectl_explains_as_on_kube_apiserver() {
    let ours = Kubectl::start().await;
    let theirs = Kubectl::on_rig("explains").await;
    for what in ["deployment", "deployment.spec", "pods --recursive", "cronjob.spec.jobTemplate", "pod.spec.containers"]
    {
        let line = format!("explain {what}");
        assert_eq!(ours.run(&line).await, without_values(&theirs.run(&line).await), "{line}");
    }
}

/// Returns an explanation without the descriptions of a field's values, which the embedded server's documents do not have.
fn without_values(explained: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut is_value = false;
    for line in explained.lines() {
        if line.trim() == "Possible enum values:" {
            is_value = true;
            kept.pop();
        }
        is_value = is_value && !line.is_empty();
        if !is_value {
            kept.push(line);
        }
    }
    kept.iter().flat_map(|line| [*line, "\n"]).collect()
}
