//! Pure: the `scale` subresource, as upstream's client reads it.

use serde_json::Value;
use steersman_base::Selector;
use steersman_base::selector::Operator;

/// Checks that upstream's client could read a scale: its selector must be one that a spec can declare.
///
/// # Errors
/// It could not; the error is upstream's.
pub(crate) fn check(scale: &Value) -> Result<(), String> {
    let selector = scale.pointer("/status/selector").and_then(Value::as_str).unwrap_or_default();
    let problem = if selector.is_empty() { None } else { problem(selector) };
    problem.map_or(Ok(()), |problem| {
        Err(format!(
            "received an object from a /scale endpoint which was not convertible to autoscaling Scale: failed to parse \
             target selector: {problem}"
        ))
    })
}

fn problem(selector: &str) -> Option<String> {
    let selector: Selector = match selector.parse() {
        Ok(selector) => selector,
        Err(error) => return Some(format!("{error}")),
    };
    selector.requirements().iter().find_map(|requirement| match requirement.operator() {
        Operator::GreaterThan(_) => Some("\"gt\" isn't supported in label selectors".to_owned()),
        Operator::LessThan(_) => Some("\"lt\" isn't supported in label selectors".to_owned()),
        Operator::NotEquals(_) => Some("\"!=\" is not a valid label selector operator".to_owned()),
        Operator::Exists | Operator::DoesNotExist | Operator::Equals(_) | Operator::In(_) | Operator::NotIn(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_selector_that_no_spec_can_declare_makes_a_scale_unreadable() {
        let check = |selector: &str, want: Option<&str>| {
            let prefix = "received an object from a /scale endpoint which was not convertible to autoscaling Scale: failed \
                          to parse target selector: ";
            let got = check(&json!({ "status": { "selector": selector } })).err();
            assert_eq!(got, want.map(|want| format!("{prefix}{want}")), "{selector}");
        };
        for fine in ["", "app=a", "app==a,b in (c,d),e notin (f),g,!h"] {
            check(fine, None);
        }
        let unparsed = r#"couldn't parse the selector string "a in (b": unable to parse requirement: found '', expected: ',' or ')'"#;
        check("a in (b", Some(unparsed));
        check("a>1", Some("\"gt\" isn't supported in label selectors"));
        check("a<1", Some("\"lt\" isn't supported in label selectors"));
        check("a!=b", Some("\"!=\" is not a valid label selector operator"));
    }

    #[test]
    fn a_scale_without_a_selector_can_be_read() {
        assert_eq!(check(&json!({ "status": {} })), Ok(()));
        assert_eq!(check(&json!({})), Ok(()));
    }
}
