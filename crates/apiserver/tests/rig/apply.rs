//! kubectl and server-side apply: the same scenario on the embedded server and on kube-apiserver.

use super::{DEPLOYMENT, Kubectl};

const DEFINITION: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.apply.example.com}
spec:
  group: apply.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer}, color: {type: string}}}
          status: {type: object, properties: {ready: {type: integer}}}
";
const WIDGET: &str = "
apiVersion: apply.example.com/v1
kind: Widget
metadata: {name: w}
spec: {size: 1}
";
const MANAGERS: &str = "-o jsonpath={range.metadata.managedFields[*]}{.manager}/{.operation}/{.subresource},{end}";

#[tokio::test]
async fn kubectl_applies_on_the_servers_side() {
    scenario(&Kubectl::start().await).await;
}

#[tokio::test]
async fn kubectl_applies_on_the_side_of_kube_apiserver() {
    scenario(&Kubectl::on_rig("kubectl-applies").await).await;
}

async fn scenario(kubectl: &Kubectl) {
    from_client_to_server_and_back(kubectl).await;
    several_managers(kubectl).await;
    custom_resources(kubectl).await;
}

async fn applied(kubectl: &Kubectl, line: &str, input: &str, want: &str) {
    let printed = kubectl.run_with(line, input).await;
    assert!(printed.contains(want), "kubectl {line}: {printed}");
}

/// Client-side apply, then server-side, which takes over what the other owned, then client-side again.
async fn from_client_to_server_and_back(kubectl: &Kubectl) {
    applied(kubectl, "apply -f -", DEPLOYMENT, "created").await;
    kubectl.expect(&format!("get deployment web {MANAGERS}"), "kubectl-client-side-apply/Update/,").await;
    let changed = DEPLOYMENT.replace("image: nginx", "image: nginx:2");
    let diff = kubectl.refused_with("diff --server-side -f -", &changed).await;
    assert!(diff.contains("+      - image: nginx:2"), "{diff}");
    applied(kubectl, "apply --server-side -f -", &changed, "serverside-applied").await;
    // Both owners are kubectl's: it hands over what client-side apply owned, and owns the annotation apart.
    let managers = kubectl.run(&format!("get deployment web {MANAGERS}")).await;
    assert_eq!(managers, "kubectl-last-applied/Apply/,kubectl/Apply/,");
    applied(kubectl, "diff --server-side -f -", &changed, "").await;
    let without = changed.replace("  replicas: 2\n", "");
    applied(kubectl, "apply --server-side -f -", &without, "serverside-applied").await;
    kubectl.expect("get deployment web -o jsonpath={.spec.replicas}", "1").await;
    applied(kubectl, "apply -f -", DEPLOYMENT, "configured").await;
    kubectl.expect("get deployment web -o jsonpath={.spec.template.spec.containers[*].image}", "nginx").await;
    kubectl.expect("get deployment web -o yaml --show-managed-fields", "f:containers").await;
    assert!(!kubectl.run("get deployment web -o yaml").await.contains("managedFields"));
}

/// Conflicts, force, and `scale`.
async fn several_managers(kubectl: &Kubectl) {
    let other = "apply --server-side --field-manager=other -f -";
    let changed = DEPLOYMENT.replace("image: nginx", "image: nginx:3");
    let refused = kubectl.refused_with(other, &changed).await;
    assert!(refused.contains(".spec.template.spec.containers[name=\"nginx\"].image"), "{refused}");
    applied(kubectl, &format!("{other} --force-conflicts"), &changed, "serverside-applied").await;
    kubectl.run("scale deployment web --replicas=4").await;
    kubectl.expect(&format!("get deployment web {MANAGERS}"), "kubectl/Update/scale,").await;
    let refused = kubectl.refused_with(other, &changed).await;
    assert!(
        refused.contains("conflict with \"kubectl\" with subresource \"scale\" using apps/v1: .spec.replicas"),
        "{refused}"
    );
    kubectl.run("delete deployment web").await;
}

/// A definition, an object of it, and its status.
async fn custom_resources(kubectl: &Kubectl) {
    applied(kubectl, "apply --server-side -f -", DEFINITION, "serverside-applied").await;
    kubectl.run("wait crd/widgets.apply.example.com --for=condition=Established --timeout=30s").await;
    applied(kubectl, "apply --server-side -f -", WIDGET, "serverside-applied").await;
    let status = format!("{WIDGET}status: {{ready: 3}}\n");
    let line = "apply --server-side --subresource=status --field-manager=controller -f -";
    applied(kubectl, line, &status, "serverside-applied").await;
    kubectl.expect("get widget w -o jsonpath={.status.ready}{.spec.size}", "31").await;
    kubectl.expect(&format!("get widget w {MANAGERS}"), "controller/Apply/status,").await;
    let red = WIDGET.replace("size: 1", "color: red");
    applied(kubectl, "apply --server-side --field-manager=painter -f -", &red, "serverside-applied").await;
    kubectl.expect("get widget w -o jsonpath={.spec.size}{.spec.color}", "1red").await;
    // On the client's side kubectl sends the type of patch that OpenAPI says is taken: no strategic merge patch.
    let plain = WIDGET.replace("name: w", "name: plain");
    applied(kubectl, "apply -f -", &plain, "created").await;
    let larger = plain.replace("size: 1", "size: 2");
    let diff = kubectl.refused_with("diff -f -", &larger).await;
    assert!(diff.contains("+  size: 2"), "{diff}");
    applied(kubectl, "apply -f -", &larger, "configured").await;
    applied(kubectl, "apply -f -", &larger, "unchanged").await;
    kubectl.expect("explain widget.metadata", "Standard object's metadata").await;
    kubectl.run("delete crd widgets.apply.example.com").await;
}
