//! Expressions about admission requests: the variables and their types, the authorizer, and what is refused.

use serde_json::{Value, json};
use steersman_cel::{
    Answer, AuthorizationCheck, AuthorizationDecision, Authorizer, Binding, COST_LIMIT_PER_RULE, CompileError,
    Environment, Program, ResultType, Variables,
};

/// Lets everybody read, and a service account do everything in its namespace.
#[derive(Debug)]
struct Readers;

impl Authorizer for Readers {
    fn authorize(&self, check: &AuthorizationCheck) -> AuthorizationDecision {
        let at_home = check.service_account.as_ref().is_some_and(|(namespace, _)| *namespace == check.namespace);
        let is_allowed = matches!(&*check.verb, "get" | "list") || at_home;
        let about = check.path.clone().unwrap_or_else(|| {
            let parts = [&check.group, &check.resource, &check.subresource, &check.namespace, &check.name];
            parts.map(String::as_str).join("|")
        });
        let error = (check.field_selector == "broken").then(|| "no selector".to_owned());
        AuthorizationDecision { is_allowed, reason: format!("{} {about}", check.verb), error }
    }
}

fn request() -> Value {
    json!({
        "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
        "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
        "name": "web",
        "namespace": "shop",
        "operation": "UPDATE",
        "userInfo": {"username": "jane", "groups": ["system:authenticated", "dev"], "extra": {"a/b": ["c"]}},
        "dryRun": false,
        "options": {"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1"},
    })
}

fn object() -> Value {
    json!({
        "metadata": {"name": "web", "labels": {"app": "web"}, "annotations": {}},
        "spec": {"replicas": 3, "ratio": 1.5, "ports": [80, 443], "paused": false},
    })
}

/// Runs an expression of any type; the old object is null.
fn run(text: &str) -> Result<Answer, String> {
    let program = Program::new(text, Variables::admission(), Environment::New, ResultType::Any);
    let program = program.map_err(|error| error.to_string())?;
    let object = object();
    let request = request();
    let check = AuthorizationCheck {
        group: "apps".to_owned(),
        resource: "deployments".to_owned(),
        namespace: "shop".to_owned(),
        name: "web".to_owned(),
        ..AuthorizationCheck::default()
    };
    let bindings = [
        ("object", Binding::Json(&object)),
        ("oldObject", Binding::Null),
        ("namespaceObject", Binding::Null),
        ("request", Binding::Json(&request)),
        ("authorizer", Binding::Authorizer(&Readers)),
        ("authorizer.requestResource", Binding::ResourceCheck(&Readers, Box::new(check))),
    ];
    program.run(&bindings, COST_LIMIT_PER_RULE).outcome
}

#[test]
fn conditions_look_at_objects_and_requests() {
    let rows = [
        ("object.metadata.name == 'web'", true),
        ("object.spec.replicas > 2 && object.spec.replicas < 4", true),
        ("object.spec.ratio == 1.5", true),
        ("443 in object.spec.ports", true),
        ("object.spec.ports.exists(port, port == 22)", false),
        ("object.spec.ports == [80, 443]", true),
        ("object.metadata.labels == {'app': 'web'}", true),
        ("object.metadata.labels == {'app': 1}", false),
        ("'app' in object.metadata.labels", true),
        ("has(object.metadata.labels) && has(object.metadata.labels.app)", true),
        ("has(object.status)", false),
        ("oldObject == null", true),
        ("object != null", true),
        ("namespaceObject == null", true),
        ("object.?status.?phase.orValue('none') == 'none'", true),
        ("object.metadata.annotations.size() == 0", true),
        ("request.operation == 'UPDATE'", true),
        ("request.kind.kind + '.' + request.kind.group == 'Deployment.apps'", true),
        ("request.namespace == 'shop' && request.name == 'web'", true),
        ("'dev' in request.userInfo.groups", true),
        ("request.userInfo.extra['a/b'].exists(value, value == 'c')", true),
        ("request.userInfo.username.startsWith('system:')", false),
        ("request.options.kind == 'UpdateOptions'", true),
        ("request.dryRun", false),
        ("has(request.subResource)", false),
    ];
    for (text, want) in rows {
        assert_eq!(run(text), Ok(Answer::Bool(want)), "{text}");
    }
}

#[test]
fn the_authorizer_is_asked_with_the_request_or_with_what_the_expression_says() {
    let rows = [
        ("authorizer.requestResource.check('get').allowed()", Answer::Bool(true)),
        ("authorizer.requestResource.check('delete').allowed()", Answer::Bool(false)),
        (
            "authorizer.requestResource.subresource('scale').check('get').reason()",
            Answer::String("get apps|deployments|scale|shop|web".to_owned()),
        ),
        ("authorizer.path('/healthz').check('get').reason()", Answer::String("get /healthz".to_owned())),
        (
            "authorizer.group('').resource('pods').namespace('n').name('p').check('watch').reason()",
            Answer::String("watch |pods||n|p".to_owned()),
        ),
        (
            "authorizer.serviceAccount('n', 'robot').group('').resource('pods').namespace('n').check('x').allowed()",
            Answer::Bool(true),
        ),
        (
            "authorizer.group('').resource('pods').fieldSelector('broken').labelSelector('a=b').check('get').error()",
            Answer::String("no selector".to_owned()),
        ),
        ("authorizer.requestResource.check('get').errored()", Answer::Bool(false)),
    ];
    for (text, want) in rows {
        assert_eq!(run(text), Ok(want), "{text}");
    }
}

#[test]
fn errors_are_those_of_upstream() {
    let rows = [
        ("object.spec.missing == 1", "no such key: missing"),
        ("oldObject.spec.replicas == 1", "no such key: spec"),
        ("namespaceObject.metadata.name == 'shop'", "no such key: metadata"),
        ("object.spec[1] == 1", "unsupported map key type: types.Int"),
        ("object.spec.ports[5] == 1", "index out of bounds: 5"),
        ("object.metadata.name - object.metadata.name == 1", "no such overload"),
        ("authorizer.path(' ').check('get').allowed()", "path must not be empty"),
        ("authorizer.group('').resource('').check('get').allowed()", "resource must not be empty"),
        ("authorizer.serviceAccount('n', 'A').path('/').check('get').allowed()", "Invalid service account name"),
        ("authorizer.serviceAccount('a.b', 'a').path('/').check('get').allowed()", "Invalid service account namespace"),
        // Two checks are affordable, three are not.
        (
            "[1, 2, 3].all(i, authorizer.path('/a').check('get').allowed())",
            "operation cancelled: actual cost limit exceeded",
        ),
    ];
    for (text, want) in rows {
        assert_eq!(run(text), Err(want.to_owned()), "{text}");
    }
}

#[test]
fn expressions_that_cannot_be_used_are_refused_in_upstreams_words() {
    let refused = |text: &str| match Program::new(text, Variables::admission(), Environment::New, ResultType::Bool) {
        Ok(_) => panic!("{text} is accepted"),
        Err(error) => error,
    };
    let invalid = |why: &str| CompileError::Invalid(why.to_owned());
    let rows = [
        ("object.spec.replicas", "must evaluate to bool but got dyn"),
        ("'x'", "must evaluate to bool but got string"),
        ("[1]", "must evaluate to bool but got list(int)"),
        ("null", "must evaluate to bool but got null_type"),
        (
            "params.x == 1",
            "compilation failed: ERROR: <input>:1:1: undeclared reference to 'params' (in container '')\n | params.x == 1\n | ^",
        ),
        (
            "request.object == null",
            "compilation failed: ERROR: <input>:1:8: undefined field 'object'\n | request.object == null\n | .......^",
        ),
        (
            "request.name == 1",
            "compilation failed: ERROR: <input>:1:14: found no matching overload for '_==_' applied to '(string, int)'\n \
             | request.name == 1\n | .............^",
        ),
        (
            "self.x",
            "compilation failed: ERROR: <input>:1:1: undeclared reference to 'self' (in container '')\n | self.x\n | ^",
        ),
    ];
    for (text, want) in rows {
        assert_eq!(refused(text), invalid(want), "{text}");
    }
    let with_params = Variables::admission().clone().with_dynamic("params");
    assert!(Program::new("params.x == 1", &with_params, Environment::New, ResultType::Bool).is_ok());
}
