//! Tables of the ranges.

use serde_json::json;
use steersman_base::Meta;

use super::plan::{Step, patch, says};
use crate::test_objects::decode;

#[test]
fn the_time_grows_with_the_cluster_and_falls_later_than_it_grew() {
    let check = |sizes: &[usize], want: &[u32]| {
        let mut step = Step::default();
        let mut got = Vec::new();
        for size in sizes {
            step = step.of(*size);
            got.push(step.seconds());
        }
        assert_eq!(got, want, "{sizes:?}");
    };
    check(&[0, 1, 100], &[0, 0, 0]);
    check(&[100, 101, 100, 90, 89, 90, 100, 101], &[0, 15, 15, 15, 0, 0, 0, 15]);
    check(&[500, 501, 450, 449], &[15, 30, 30, 15]);
    check(&[1000, 1001, 900, 899], &[30, 60, 60, 30]);
    check(&[2000, 2001, 1800, 1799], &[60, 300, 300, 60]);
    // Many at once, up and down.
    check(&[5000, 0, 600, 95], &[300, 0, 30, 15]);
}

#[test]
fn a_node_says_a_number_or_is_corrected() {
    let check = |text: Option<&str>, seconds: u32, want: bool| {
        let node: Meta = decode(json!({ "metadata": { "annotations": { "node.alpha.kubernetes.io/ttl": text } } }));
        assert_eq!(says(&node, seconds), want, "{text:?}");
    };
    check(Some("0"), 0, true);
    check(Some("15"), 15, true);
    check(Some("+15"), 15, true);
    check(Some("15"), 0, false);
    check(Some("soon"), 0, false);
    check(Some(""), 0, false);
    check(None, 0, false);
    let bare: Meta = decode(json!({ "metadata": { "name": "n", "uid": "u" } }));
    assert!(!says(&bare, 0));
    let want = json!({ "metadata": { "uid": "u", "annotations": { "node.alpha.kubernetes.io/ttl": "15" } } });
    assert_eq!(patch(&bare, 15), want);
}
