//! Pure: upstream's messages.

use steersman_base::Meta;

/// Returns the message of an attached volume. Upstream's ends with a space.
pub(super) fn attached(volume: &str) -> String {
    format!("AttachVolume.Attach succeeded for volume {volume:?} ")
}

/// Returns the message of a volume that could not be attached.
pub(super) fn failed(volume: &str, error: &str) -> String {
    format!("AttachVolume.Attach failed for volume {volume:?} : {error}")
}

/// Returns the message to a pod whose volume is attached to another node, with the pods that use it there. Pods of other
/// namespaces are not named.
pub(super) fn refused(volume: &str, pod: &Meta, others: &[&Meta]) -> String {
    let local: Vec<&str> =
        others.iter().filter(|other| other.namespace == pod.namespace).map(|other| &*other.name).collect();
    let elsewhere = others.len() - local.len();
    let why = match (local.as_slice(), elsewhere) {
        ([], 0) => {
            "Volume is already exclusively attached to one node, waiting on detach before it can be attached to \
                    another node"
                .to_owned()
        }
        ([], _) => format!("Volume is already used by {elsewhere} pod(s) in different namespaces"),
        (_, 0) => format!("Volume is already used by pod(s) {}", local.join(", ")),
        _ => {
            format!(
                "Volume is already used by pod(s) {} and {elsewhere} pod(s) in different namespaces",
                local.join(", ")
            )
        }
    };
    format!("Waiting for detach for volume {volume:?} {why}")
}
