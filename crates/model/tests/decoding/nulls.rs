//! Null is the same as absent.

use proptest::prelude::*;
use proptest::test_runner::TestRng;
use serde_json::{Value, json};
use steersman_base::Meta;
use steersman_model::corpus::every_field;
use steersman_model::{
    DeploymentView, Encoded, EndpointSliceView, EndpointsView, LeaseView, NamespaceView, NodeView, PodView,
    ServiceView, View,
};

/// Makes one field in twenty null in `null`, and takes it away in `absent`. An element of a list cannot be absent; null
/// is an empty one.
fn null_some(null: &mut Value, absent: &mut Value, random: &mut TestRng) {
    let is_chosen = |random: &mut TestRng| random.next_u32().is_multiple_of(20);
    match (null, absent) {
        // The entries of a map have no absence: there null is an empty text.
        (Value::Object(null), Value::Object(_)) if null.keys().any(|name| name.starts_with("key-")) => {}
        (Value::Object(null), Value::Object(absent)) => {
            for (name, inner) in null {
                if is_chosen(random) {
                    *inner = Value::Null;
                    absent.remove(name);
                } else {
                    null_some(inner, &mut absent[name.as_str()], random);
                }
            }
        }
        (Value::Array(null), Value::Array(absent)) => {
            for (null, absent) in null.iter_mut().zip(absent) {
                match null {
                    Value::Object(_) if is_chosen(random) => (*null, *absent) = (Value::Null, json!({})),
                    Value::String(_) if is_chosen(random) => (*null, *absent) = (Value::Null, json!("")),
                    _ => null_some(null, absent, random),
                }
            }
        }
        _ => {}
    }
}

fn check<V: View + PartialEq + std::fmt::Debug>(object: &Value, random: &mut TestRng) {
    let mut null = object.clone();
    let mut absent = object.clone();
    null_some(&mut null, &mut absent, random);
    let decode = |value: &Value| V::decode(Encoded::Json(value.to_string().as_bytes())).unwrap();
    assert!(decode(&null) == decode(&absent), "null is not as if absent here: {null}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_null_anywhere_is_as_if_the_field_were_absent(_ in any::<()>(), mut random in any::<u64>().prop_perturb(|_, random| random)) {
        check::<Meta>(&every_field("meta.v1.PartialObjectMetadata"), &mut random);
        check::<PodView>(&crate::pod::pod(), &mut random);
        check::<ServiceView>(&every_field("core.v1.Service"), &mut random);
        check::<NodeView>(&every_field("core.v1.Node"), &mut random);
        check::<NamespaceView>(&every_field("core.v1.Namespace"), &mut random);
        check::<EndpointsView>(&every_field("core.v1.Endpoints"), &mut random);
        check::<EndpointSliceView>(&every_field("discovery.v1.EndpointSlice"), &mut random);
        check::<LeaseView>(&every_field("coordination.v1.Lease"), &mut random);
        // The spec of a template is not read.
        let mut deployment = every_field("apps.v1.Deployment");
        deployment["spec"]["template"]["spec"] = json!({});
        check::<DeploymentView>(&deployment, &mut random);
    }
}
