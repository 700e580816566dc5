//! Tables of the decisions.

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_base::names::finalizers::PV_PROTECTION;
use steersman_informer::Change;
use steersman_model::core::PersistentVolumeView;

use super::plan;
use crate::protection::{self, Step};
use crate::test_objects::{NOW, decode};

fn volume(phase: &str, is_terminating: bool, held: &[&str]) -> Value {
    let mut volume = json!({ "metadata": { "name": "disk", "finalizers": held }, "status": { "phase": phase } });
    if is_terminating {
        volume["metadata"]["deletionTimestamp"] = json!(NOW);
    }
    volume
}

#[test]
fn a_bound_volume_is_kept_and_any_other_is_released() {
    let check = |phase: &str, is_terminating: bool, held: &[&str], want: Step| {
        let mut live = volume(phase, is_terminating, held);
        let view: PersistentVolumeView = decode(live.clone());
        assert_eq!(plan::plan(&view), want, "{live}");
        assert_eq!(plan::release(&mut live), want == Step::Release, "{live}");
        let change = Change::Added { new: Arc::new(view), initial: true };
        let is_bound_and_leaving = is_terminating && phase == "Bound" && !held.is_empty();
        assert_eq!(
            protection::key(&change, PV_PROTECTION).is_some(),
            want != Step::Nothing || is_bound_and_leaving,
            "{live}"
        );
    };
    check("Bound", false, &[PV_PROTECTION], Step::Nothing);
    check("Bound", true, &[PV_PROTECTION], Step::Nothing);
    check("Released", true, &[PV_PROTECTION], Step::Release);
    check("Available", true, &[PV_PROTECTION], Step::Release);
    check("Pending", true, &[PV_PROTECTION], Step::Release);
    check("Failed", true, &[PV_PROTECTION], Step::Release);
    check("Available", true, &[], Step::Nothing);
    check("Available", false, &[], Step::Add);
}
