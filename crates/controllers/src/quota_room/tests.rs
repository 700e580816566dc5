//! A table of changes of a quota.

use serde_json::{Value, json};
use steersman_informer::Change;
use steersman_model::core::ResourceQuotaView;

use super::map::makes_room;
use crate::test_objects::decode;

#[test]
fn a_raised_limit_and_a_freed_amount_make_room() {
    let check = |name: &str, old: Value, new: Value, want: bool| {
        let quota =
            |status: Value| decode::<ResourceQuotaView>(json!({ "metadata": { "name": "q" }, "status": status }));
        let change = Change::Updated { old: quota(old).into(), new: quota(new).into() };
        assert_eq!(makes_room(&change), want, "{name}");
    };
    let status = |hard: Value, used: Value| json!({ "hard": hard, "used": used });
    let pods = |hard: &str, used: &str| status(json!({ "pods": hard }), json!({ "pods": used }));
    check("nothing", pods("3", "2"), pods("3", "2"), false);
    check("charged", pods("3", "2"), pods("3", "3"), false);
    check("lowered", pods("3", "2"), pods("2", "2"), false);
    check("raised", pods("3", "2"), pods("4", "2"), true);
    check("raised in another unit", pods("1000m", "1"), pods("1", "1"), false);
    check("freed", pods("3", "2"), pods("3", "1"), true);
    check("no limit any more", pods("3", "2"), json!({}), true);
    check("counted at last", status(json!({ "pods": "3" }), json!({})), pods("3", "2"), true);
    let quota: ResourceQuotaView = decode(json!({ "metadata": { "name": "q" } }));
    assert!(!makes_room(&Change::Added { new: quota.into(), initial: false }));
}
