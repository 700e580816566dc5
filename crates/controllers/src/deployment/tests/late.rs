//! A Deployment with ReplicaSets that act late and report late: a model of a cluster with stale statuses.
//!
//! The Deployment's decisions are the real ones (`plan`). ReplicaSets, pods and users are modelled in a few lines each,
//! and take turns at random; each sees only what the others have *reported*. The actual state is checked.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use steersman_base::StringMap;
use steersman_model::View;
use steersman_model::apps::{DeploymentView, ReplicaSetView};

use super::super::plan::{Observed, Plan, Work, plan};
use super::super::rolling::Limits;
use super::super::sets::Sets;
use super::super::status::is_complete;
use super::{deployment, set};

/// A pod: whether it is available, and whether it ever will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Pod {
    available: bool,
    broken: bool,
}

/// A ReplicaSet: its actual state and its reported status.
#[derive(Clone, Debug)]
struct Set {
    image: u32,
    wanted: i32,
    generation: i64,
    annotations: BTreeMap<String, String>,
    pods: Vec<Pod>,
    /// The counts that its controller has made and not yet written.
    counted: Option<Reported>,
    reported: Reported,
}

#[derive(Clone, Copy, Debug, Default)]
struct Reported {
    replicas: i32,
    available: i32,
    observed: i64,
}

#[derive(Clone, Debug)]
struct World {
    random: fastrand::Rng,
    replicas: i32,
    image: u32,
    surge: i32,
    unavailable: i32,
    sets: Vec<Set>,
    log: Vec<String>,
}

/// The number of random worlds: a few seconds in a debug build.
const WORLDS: u64 = 40;

/// Images from this one on never become available.
const BROKEN: u32 = 6;

// === impl Set ===

impl Set {
    fn available(&self) -> i32 {
        i32::try_from(self.pods.iter().filter(|pod| pod.available).count()).unwrap()
    }

    /// Returns the number of available pods left after the surplus is deleted.
    fn remaining(&self, wanted: i32) -> i32 {
        self.available().min(wanted)
    }

    fn counts(&self) -> Reported {
        Reported {
            replicas: i32::try_from(self.pods.len()).unwrap(),
            available: self.available(),
            observed: self.generation,
        }
    }

    /// A pass of its controller: counts, then creates pods or deletes them, unavailable ones first.
    fn act(&mut self) {
        self.counted = Some(self.counts());
        let wanted = usize::try_from(self.wanted).unwrap();
        self.pods.sort();
        while self.pods.len() > wanted {
            self.pods.remove(0);
        }
        while self.pods.len() < wanted {
            self.pods.push(Pod { available: false, broken: self.image >= BROKEN });
        }
    }

    fn view(&self, index: usize) -> Arc<ReplicaSetView> {
        let reported = self.reported;
        let status = json!({
            "replicas": reported.replicas, "readyReplicas": reported.available, "availableReplicas": reported.available,
            "observedGeneration": reported.observed,
        });
        let meta = json!({ "generation": self.generation, "annotations": self.annotations });
        // A name determines the age; there are fewer than ten.
        set(&format!("v{index}"), &image(self.image), self.wanted, json!({ "metadata": meta, "status": status }))
    }
}

fn image(number: u32) -> String {
    format!("web:{number}")
}

fn plain(annotations: &StringMap) -> BTreeMap<String, String> {
    annotations.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

// === impl World ===

impl World {
    fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let replicas = random.i32(1..=20);
        let surge = random.i32(0..=5);
        let unavailable = random.i32(i32::from(surge == 0)..=5);
        Self { random, replicas, image: 1, surge, unavailable, sets: Vec::new(), log: Vec::new() }
    }

    fn deployment(&self) -> DeploymentView {
        let rolling = json!({ "maxSurge": self.surge, "maxUnavailable": self.unavailable });
        let containers = json!([{ "name": "main", "image": image(self.image) }]);
        let mut more: Value =
            json!({ "spec": { "replicas": self.replicas, "strategy": { "rollingUpdate": rolling } } });
        more["spec"]["template"] = json!({ "spec": { "containers": containers } });
        let reported = |count: &dyn Fn(&Set) -> i32| self.sets.iter().map(count).sum::<i32>();
        let new = self.sets.iter().find(|set| set.image == self.image);
        more["status"] = json!({
            "observedGeneration": 1, "replicas": reported(&|set| set.reported.replicas),
            "availableReplicas": reported(&|set| set.reported.available), "updatedReplicas": new.map_or(0, |set| set.reported.replicas),
        });
        deployment(more)
    }

    fn say(&mut self, text: String) {
        self.log.push(text);
    }

    /// A pass of the Deployment. Returns whether it wrote anything.
    fn reconcile(&mut self) -> bool {
        let deployment = self.deployment();
        let views: Vec<_> = self.sets.iter().enumerate().map(|(index, set)| set.view(index)).collect();
        let sets = Sets::find(&deployment.spec.template, views.clone());
        let Plan::Work(work) = plan(&Observed { deployment: &deployment, sets: &sets, old_pods: &[] }) else {
            panic!("nobody asked for a roll-back");
        };
        let before = self.sets.clone();
        let did = self.apply(&work, &views);
        self.check(Limits::of(&deployment.spec), &before);
        did
    }

    fn apply(&mut self, work: &Work, views: &[Arc<ReplicaSetView>]) -> bool {
        assert!(work.delete.is_empty(), "history is long enough");
        for change in &work.change {
            let at = views.iter().position(|view| Arc::ptr_eq(view, &change.set)).unwrap();
            let set = &mut self.sets[at];
            if set.wanted != change.replicas {
                set.generation += 1;
                self.log.push(format!("{}: {} -> {}", image(set.image), set.wanted, change.replicas));
            }
            (set.wanted, set.annotations) = (change.replicas, plain(&change.annotations));
        }
        if let Some(made) = &work.create {
            let wanted = made.spec.replicas.unwrap();
            let annotations = plain(&made.meta().annotations);
            self.say(format!("{}: made with {wanted}", image(self.image)));
            let pods = Vec::new();
            let counted = None;
            let reported = Reported::default();
            self.sets.push(Set { image: self.image, wanted, generation: 1, annotations, pods, counted, reported });
        }
        work.create.is_some() || !work.change.is_empty()
    }

    /// Checks what the step does to the actual pods. `before` are the sets before it.
    fn check(&self, limits: Limits, before: &[Set]) {
        let total = |sets: &[Set]| sets.iter().map(|set| set.wanted).sum::<i32>();
        assert!(total(&self.sets) <= total(before).max(limits.total_max()), "too many: {limits:?} {self:#?}");
        // A pod whose availability was not reported yet may be taken for an unavailable one.
        let known = |set: &Set| set.remaining(set.wanted).min(set.reported.available);
        let remained: i32 = before.iter().map(known).sum();
        let remains: i32 = self.sets.iter().map(|set| set.remaining(set.wanted)).sum();
        assert!(
            remains >= remained.min(limits.available_min()),
            "{remains} remain of {remained}: {limits:?}, was {before:#?}, is {self:#?}"
        );
    }

    /// Lets one random participant act.
    fn turn(&mut self) {
        let count = self.sets.len();
        match self.random.u8(0..10) {
            0..4 => drop(self.reconcile()),
            _ if count == 0 => {}
            4..6 => {
                let at = self.random.usize(..count);
                self.sets[at].act();
            }
            6..8 => {
                let at = self.random.usize(..count);
                let set = &mut self.sets[at];
                set.reported = set.counted.take().unwrap_or(set.reported);
            }
            _ => {
                let at = self.random.usize(..count);
                if let Some(pod) = self.sets[at].pods.iter_mut().find(|pod| !pod.available && !pod.broken) {
                    pod.available = true;
                }
            }
        }
    }

    /// A user changes one or several fields in one patch.
    fn change(&mut self) {
        let what = self.random.u8(1..4);
        if what & 1 != 0 {
            self.replicas = self.random.i32(0..=20);
        }
        if what & 2 != 0 {
            self.image = self.random.u32(1..=BROKEN + 1);
        }
        self.say(format!("a user asks for {} of {}", self.replicas, image(self.image)));
    }

    /// All statuses are reported, and every pod that can becomes available: the Deployment must converge.
    fn heal(&mut self) {
        self.image = self.image.min(BROKEN - 1);
        for _ in 0..200 {
            for set in &mut self.sets {
                set.act();
                set.pods.iter_mut().for_each(|pod| pod.available = !pod.broken);
                set.reported = set.counts();
            }
            let did = self.reconcile();
            let deployment = self.deployment();
            if !did && is_complete(&deployment, &deployment.status) {
                return;
            }
        }
        panic!("it got stuck: {self:#?}");
    }
}

/// With ReplicaSets whose status lags by any number of steps, ready pods that are not about to be deleted never fall
/// below `replicas - maxUnavailable` by an action of the Deployment, whatever users change meanwhile; and the rollout
/// always completes.
#[test]
fn however_late_statuses_are_the_limits_hold_and_the_roll_out_gets_through() {
    for seed in 0..WORLDS {
        let mut world = World::new(seed);
        let changes = world.random.usize(1..6);
        for _ in 0..changes {
            let turns = world.random.usize(1..60);
            for _ in 0..turns {
                world.turn();
            }
            if world.sets.len() < 9 {
                world.change();
            }
        }
        world.heal();
    }
}
