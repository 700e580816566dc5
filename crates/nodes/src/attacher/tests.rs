//! Tables for the steps of an attachment.

use std::time::Duration;

use serde_json::{Value, json};
use steersman_base::MicroTime;
use steersman_model::storage::VolumeAttachmentView;
use steersman_model::{Encoded, View};

use super::plan::{Step, finalizer, finalizers, next};

const CREATED: &str = "2026-11-15T12:00:00Z";
const DELAY: Duration = Duration::from_secs(5);

fn attachment(finalizers: &[&str], is_attached: bool, is_deleted: bool) -> VolumeAttachmentView {
    let mut metadata = json!({ "name": "a", "uid": "u", "finalizers": finalizers, "creationTimestamp": CREATED });
    if is_deleted {
        metadata["deletionTimestamp"] = json!(CREATED);
    }
    let spec = json!({ "attacher": "d.io/x", "nodeName": "n", "source": { "persistentVolumeName": "v" } });
    let object: Value = json!({ "metadata": metadata, "spec": spec, "status": { "attached": is_attached } });
    VolumeAttachmentView::decode(Encoded::Json(object.to_string().as_bytes())).expect("it is one")
}

#[test]
fn an_attachment_is_held_attached_detached_and_released_in_this_order() {
    let ours = finalizer("d.io/x");
    assert_eq!(ours, "external-attacher/d.io-x");
    let created: MicroTime = CREATED.parse().expect("a time");
    let check = |finalizers: &[&str], is_attached, is_deleted, after: u64, want: Step| {
        let attachment = attachment(finalizers, is_attached, is_deleted);
        let now = created + Duration::from_secs(after);
        assert_eq!(next(&attachment, DELAY, now), want, "{finalizers:?} {is_attached} {is_deleted} {after}");
    };
    check(&[], false, false, 0, Step::Hold);
    check(&[&ours], false, false, 2, Step::Wait(Duration::from_secs(3)));
    check(&[&ours], false, false, 5, Step::Attach);
    check(&[&ours], true, false, 9, Step::Nothing);
    check(&[&ours], true, true, 0, Step::Wait(DELAY));
    check(&[&ours], true, true, 5, Step::Detach);
    check(&[&ours], false, true, 5, Step::Release);
    check(&["other"], true, true, 5, Step::Nothing);
}

#[test]
fn finalizers_of_others_stay() {
    let ours = finalizer("d.io/x");
    let held = finalizers(&attachment(&["other"], false, false), true);
    assert_eq!(held["metadata"]["finalizers"], json!(["other", ours]));
    let released = finalizers(&attachment(&[&ours, "other"], false, true), false);
    assert_eq!(released["metadata"]["finalizers"], json!(["other"]));
}
