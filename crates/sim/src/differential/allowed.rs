//! Differences that are meant: each with its reason, which a page or `docs/differences.md` gives at length.

use super::compare::{Area, Difference};

/// A difference that is meant. `*` in a pattern stands for any text.
#[derive(Clone, Copy, Debug)]
pub struct Allowed {
    /// Where.
    pub area: Area,
    /// The resource, the source of an event, or verb and resource of a request.
    pub about: &'static str,
    /// The object, or the event.
    pub name: &'static str,
    /// The field.
    pub path: &'static str,
    /// The reason.
    pub why: &'static str,
}

/// The table.
pub const ALLOWED: [Allowed; 26] = [
    state("serviceaccounts", "kube-system/*", "", "an account is created with the first request of its controller"),
    state(
        "endpointslices.discovery.k8s.io",
        "*",
        "metadata.annotations*",
        "the trigger time is that of the last published change; upstream's may be that of another, or be lost",
    ),
    state(
        "endpoints",
        "*",
        "metadata.annotations*",
        "the trigger time is that of the last published change; upstream's may be that of another, or be lost",
    ),
    state(
        "endpointslices.discovery.k8s.io",
        "*",
        "metadata.generateName",
        "a mirrored slice that is replaced keeps it; upstream loses it",
    ),
    state(
        "resourcequotas",
        "*",
        "status.used.*",
        "upstream counts from a cache that lags, and stays wrong until something is deleted",
    ),
    state(
        "persistentvolumeclaims",
        "*",
        "status.conditions[Unused].*",
        "upstream's stays wrong if another pod of the same name comes at once",
    ),
    state("pods", "seq-*-quota/*", "", "a raised quota helps at once; upstream waits for its back-off"),
    state("namespaces", "seq-*-*", "", "it ends sooner: upstream waits for half a grace period"),
    state("*", "seq-*-*/*", "", "a namespace that ends is emptied sooner: upstream waits for half a grace period"),
    state(
        "storageversionmigrations.storagemigration.k8s.io",
        "*",
        "status.*",
        "upstream waits until a bookmark reaches the garbage collector's cache",
    ),
    event(
        "*",
        "*the object has been modified*",
        "upstream tells of conflicts, which are retried; here the pass waits for the cache",
    ),
    event(
        "endpoint-controller",
        "*already exists",
        "upstream acts on a stale cache; here the pass waits for the cache",
    ),
    event(
        "endpoint-slice-controller",
        "*TopologyAwareHints*",
        "upstream repeats it with every pass in which hints are not possible",
    ),
    event("deployment-controller", "*ScalingReplicaSet*", "the steps of a roll-out depend on when pods become ready"),
    event("persistentvolume-controller", "*WaitFor*", "whether the pod of a claim was seen before the claim is chance"),
    event("persistentvolume-controller", "*ExternalProvisioning*", "repeated by passes until the volume is there"),
    event(
        "attachdetach-controller",
        "*SuccessfulAttachVolume*",
        "upstream tells the pods that were known when it began, here those of the end",
    ),
    event("attachdetach-controller", "*Waiting for detach*", "upstream names pods in random order"),
    calls(
        "reads of persistentvolumeclaims",
        "p*",
        "objects are read before they are written: the cache does not hold all of them",
    ),
    calls(
        "reads of persistentvolumeclaims",
        "statefulset-controller",
        "read before they are written: the cache does not hold all of them",
    ),
    calls("reads of persistentvolumes", "p*", "read before they are written: the cache does not hold all of them"),
    calls("reads of configmaps", "bootstrap-signer", "read before it is written: the cache does not hold all of it"),
    calls(
        "reads of configmaps",
        "manager",
        "the trust bundle is published from what the server says, with the manager's own account",
    ),
    calls(
        "reads of storageversionmigrations",
        "storage-version-migrator-controller",
        "no two migrations of a resource at once, whatever the cache shows",
    ),
    calls(
        "reads of *",
        "namespace-controller",
        "listed first; upstream deletes each collection first, which is a write",
    ),
    calls(
        "*",
        "generic-garbage-collector",
        "what upstream's namespace controller deletes as a collection may be collected one by one here, and conversely",
    ),
];

const fn state(about: &'static str, name: &'static str, path: &'static str, why: &'static str) -> Allowed {
    Allowed { area: Area::State, about, name, path, why }
}

const fn event(about: &'static str, name: &'static str, why: &'static str) -> Allowed {
    Allowed { area: Area::Event, about, name, path: "", why }
}

const fn calls(about: &'static str, name: &'static str, why: &'static str) -> Allowed {
    Allowed { area: Area::Calls, about, name, path: "", why }
}

/// Returns the entry that allows a difference.
#[must_use]
pub fn allows(difference: &Difference) -> Option<usize> {
    ALLOWED.iter().position(|allowed| {
        allowed.area == difference.area
            && matches(allowed.about, &difference.about)
            && matches(allowed.name, &difference.name)
            && matches(allowed.path, &difference.path)
    })
}

/// Whether a text has the form of a pattern.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((before, after)) => text.strip_prefix(before).is_some_and(|rest| {
            // The shortest text for the first `*` may not be the right one.
            (0..=rest.len()).filter(|at| rest.is_char_boundary(*at)).any(|at| matches(after, &rest[at..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text, want) in [
            ("pods", "pods", true),
            ("pods", "pods.x", false),
            ("*", "", true),
            ("status.conditions[*].message", "status.conditions[Ready].message", true),
            ("a*c*e", "abcde", true),
            ("a*c*e", "abdde", false),
        ] {
            assert_eq!(matches(pattern, text), want, "{pattern} {text}");
        }
    }
}
