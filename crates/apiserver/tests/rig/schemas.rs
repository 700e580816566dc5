//! Definitions with schemas and rules, as kubectl sees them.

use crate::Kubectl;

const DEFINITION: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, shortNames: [wd]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size, description: How large it is}
    - {name: Color, type: string, jsonPath: .spec.color, priority: 1}
    schema:
      openAPIV3Schema:
        type: object
        description: A widget is a part of a machine.
        properties:
          spec:
            type: object
            description: What is wanted.
            required: [size]
            properties:
              size: {type: integer, description: The size in inches.}
              color: {type: string, default: red, enum: [red, blue]}
            x-kubernetes-validations:
            - {rule: 'self.size < 10', message: too large}
            - {rule: 'self.size >= oldSelf.size', message: size only grows}
";

fn widget(spec: &str) -> String {
    format!("{{apiVersion: example.com/v1, kind: Widget, metadata: {{name: w}}, spec: {spec}}}")
}

async fn define(kubectl: &Kubectl) {
    kubectl.run_with("create -f -", DEFINITION).await;
    kubectl.expect("wait crd/widgets.example.com --for=condition=Established --timeout=10s", "met").await;
}

#[tokio::test]
async fn kubectl_explains_a_definition_at_once() {
    let kubectl = Kubectl::start().await;
    define(&kubectl).await;
    let printed = kubectl.run("explain widget.spec").await;
    for part in
        ["What is wanted.", "size\t<integer> -required-", "The size in inches.", "color\t<string>", "enum: red, blue"]
    {
        assert!(printed.contains(part), "no {part:?} in\n{printed}");
    }
    kubectl.expect("explain widgets --recursive", "A widget is a part of a machine.").await;
    kubectl.expect("api-resources --api-group=example.com", "wd").await;
    // A changed schema is explained as fast.
    kubectl.run_with("apply -f -", &DEFINITION.replace("The size in inches.", "The size in feet.")).await;
    kubectl.expect("explain widget.spec.size", "The size in feet.").await;
}

#[tokio::test]
async fn kubectl_validates_shows_and_hears_of_rules() {
    let kubectl = Kubectl::start().await;
    define(&kubectl).await;
    let refused = kubectl.refused_with("create --validate=strict -f -", &widget("{size: 2, colour: blue}")).await;
    assert!(refused.contains("unknown field \"spec.colour\""), "{refused}");
    let refused = kubectl.refused_with("create -f -", &widget("{size: 12}")).await;
    assert!(refused.contains("spec: Invalid value: too large"), "{refused}");
    let refused = kubectl.refused_with("create -f -", &widget("{size: 2, color: green}")).await;
    assert!(
        refused.contains("spec.color: Unsupported value: \"green\": supported values: \"red\", \"blue\""),
        "{refused}"
    );
    kubectl.run_with("create -f -", &widget("{size: 2}")).await;
    let shown = kubectl.run("get widgets").await;
    assert_eq!(shown.split_whitespace().collect::<Vec<_>>(), ["NAME", "SIZE", "w", "2"], "{shown}");
    let wide = kubectl.run("get wd -o wide").await;
    assert_eq!(wide.split_whitespace().collect::<Vec<_>>(), ["NAME", "SIZE", "COLOR", "w", "2", "red"], "{wide}");
    let refused = kubectl.refused_with("patch widget w --type=merge -p {\"spec\":{\"size\":1}}", "").await;
    assert!(refused.contains("spec: Invalid value: size only grows"), "{refused}");
}
