//! Surge and unavailability: upstream's tables, and a grid of whole rollouts.

use serde_json::{Value, json};

use super::super::rolling::{Limits, Size, new_size, old_sizes};
use super::deployment;

/// Returns a ReplicaSet whose status is about its current spec, and whose ready pods are available.
fn size(wanted: i32, available: i32) -> Size {
    Size { wanted, ready: available, available, observed: true }
}

/// Returns one with ready pods that are not available yet.
fn waiting(wanted: i32, ready: i32, available: i32) -> Size {
    Size { ready, ..size(wanted, available) }
}

/// Returns a ReplicaSet whose status is about an older spec.
fn unobserved(wanted: i32, available: i32) -> Size {
    Size { observed: false, ..size(wanted, available) }
}

fn limits(desired: i32, surge: i32, unavailable: i32) -> Limits {
    Limits { desired, surge, unavailable }
}

#[test]
fn shares_become_numbers_and_never_both_nothing() {
    let check = |replicas: i32, surge: Value, unavailable: Value, want: (i32, i32)| {
        let rolling = json!({ "maxSurge": surge, "maxUnavailable": unavailable });
        let spec = json!({ "replicas": replicas, "strategy": { "rollingUpdate": rolling } });
        let deployment = deployment(json!({ "spec": spec }));
        let got = Limits::of(&deployment.spec);
        assert_eq!((got.desired, got.surge, got.unavailable), (replicas, want.0, want.1), "{replicas} with {rolling}");
    };
    check(10, json!("39%"), json!("39%"), (4, 3));
    check(10, json!(null), json!("39%"), (0, 3));
    check(10, json!("39%"), json!(null), (4, 0));
    check(10, json!(null), json!(null), (0, 1));
    check(2, json!("0%"), json!("1%"), (0, 1));
    check(2, json!("1%"), json!("25%"), (1, 0));
    check(10, json!(1), json!(10), (1, 10));
    check(5, json!(1), json!(10), (1, 5));
    check(0, json!(1), json!(10), (1, 0));
    check(5, json!(1), json!("100%"), (1, 5));
    check(10, json!("oops"), json!("39%"), (0, 3));
    let recreate = deployment(json!({ "spec": { "strategy": { "type": "Recreate" } } }));
    assert_eq!(Limits::of(&recreate.spec), limits(3, 0, 0), "there is no room in either direction");
}

#[test]
fn the_new_one_grows_as_far_as_there_is_room() {
    let check = |desired: i32, surge: i32, old: i32, new: i32, want: i32| {
        let got = new_size(limits(desired, surge, 0), new, old + new);
        assert_eq!(got, want, "{desired}+{surge}, {old} old, {new} new");
    };
    check(10, 0, 10, 0, 0);
    check(10, 2, 10, 0, 2);
    check(10, 2, 5, 0, 7);
    check(10, 2, 10, 2, 2);
    check(10, 2, 2, 11, 10);
    check(6, 10, 5, 2, 6);
    check(i32::MAX, i32::MAX, 1, 0, i32::MAX - 1);
}

#[test]
fn the_old_ones_shrink_as_far_as_nobody_is_missed() {
    let check = |name: &str, limits: Limits, new: (i32, i32), old: &[(i32, i32)], want: &[i32]| {
        let size = |(wanted, available): (i32, i32)| size(wanted, available);
        let old: Vec<_> = old.iter().copied().map(size).collect();
        assert_eq!(old_sizes(limits, size(new), &old), want, "{name}");
    };
    check("two may be missing", limits(10, 0, 2), (0, 0), &[(10, 10)], &[8]);
    check("both that are unwell go", limits(10, 0, 2), (0, 0), &[(10, 8)], &[8]);
    check("one that is unwell, and one more", limits(10, 0, 2), (0, 0), &[(10, 9)], &[8]);
    check("the new ones are not there yet", limits(10, 0, 2), (2, 0), &[(8, 8)], &[8]);
    check("the new ones are there", limits(10, 0, 2), (2, 2), &[(8, 8)], &[6]);
    check("none may be missing, one is on top", limits(10, 1, 0), (1, 1), &[(10, 10)], &[9]);
    check("the oldest go first", limits(10, 0, 2), (4, 4), &[(3, 3), (3, 3)], &[1, 3]);
    check(
        "the unwell of the younger before the well of the older",
        limits(10, 2, 0),
        (0, 0),
        &[(6, 6), (6, 4)],
        &[6, 4],
    );
    check("a roll-over", limits(10, 3, 2), (0, 0), &[(8, 8), (5, 0)], &[8, 0]);
    check("a node is lost in a roll-out that hangs", limits(10, 3, 2), (5, 0), &[(8, 7)], &[8]);
    check("nothing is left", limits(3, 1, 0), (3, 3), &[(0, 0)], &[0]);
}

/// Each row is a state in which the status and the spec of a ReplicaSet disagree.
#[test]
fn pods_that_are_about_to_go_are_none_to_count_on() {
    let check = |name: &str, limits: Limits, new: Size, old: &[Size], want: &[i32]| {
        assert_eq!(old_sizes(limits, new, old), want, "{name}");
    };
    let none = || size(0, 0);
    check("20 -> 8 and a new template in one patch", limits(8, 2, 2), size(2, 0), &[size(8, 20)], &[6]);
    check("the same, one step later", limits(8, 2, 2), size(4, 0), &[size(6, 20)], &[6]);
    check("none may be missing", limits(20, 5, 0), size(5, 3), &[size(17, 20)], &[17]);
    check("none may be missing, and two more are there", limits(20, 5, 0), size(5, 5), &[size(17, 20)], &[15]);
    check("scaled down and up again", limits(20, 5, 0), unobserved(20, 20), &[size(5, 5)], &[5]);
    check("scaled down and up again, and it says so", limits(20, 5, 0), size(20, 15), &[size(5, 5)], &[5]);
    check("a new one that was scaled down", limits(8, 2, 2), size(8, 20), &[size(2, 2)], &[0]);
    check(
        "another one's unhealthy pods end the clean-up",
        limits(10, 3, 2),
        none(),
        &[size(5, 0), size(8, 13)],
        &[0, 8],
    );
    check("unhealthy, or not seen yet?", limits(10, 3, 2), none(), &[unobserved(5, 0), size(8, 8)], &[5, 8]);
    check("nobody has looked at the old one yet", limits(3, 1, 1), none(), &[unobserved(3, 3)], &[3]);
    check("enough remain without it", limits(3, 1, 1), size(3, 3), &[unobserved(1, 1)], &[0]);
    check("a status that is nonsense", limits(3, 1, 1), size(3, -7), &[size(1, -2)], &[1]);
}

/// A ReplicaSet deletes pods that are not ready first, and among the ready ones it goes by cost, neighbours and age.
#[test]
fn a_ready_pod_that_is_not_available_yet_is_none_that_goes_first() {
    let check = |name: &str, limits: Limits, new: Size, old: &[Size], want: &[i32]| {
        assert_eq!(old_sizes(limits, new, old), want, "{name}");
    };
    let none = || size(0, 0);
    check("two that wait, and none may go", limits(10, 0, 2), none(), &[waiting(10, 10, 8)], &[10]);
    check("two that are not ready", limits(10, 0, 2), none(), &[waiting(10, 8, 8)], &[8]);
    check("one of each", limits(10, 0, 2), none(), &[waiting(10, 9, 8)], &[9]);
    check("one that waits, and one may go", limits(10, 0, 2), none(), &[waiting(10, 10, 9)], &[9]);
    check("all wait: none of them is available", limits(10, 0, 2), none(), &[waiting(10, 10, 0)], &[8]);
    check("all are available by now", limits(10, 0, 2), none(), &[waiting(10, 10, 10)], &[8]);
    check("the new ones make up for them", limits(10, 0, 2), size(2, 2), &[waiting(8, 8, 6)], &[8]);
    check("the new ones are enough", limits(10, 0, 2), size(8, 8), &[waiting(2, 2, 1)], &[1]);
    check(
        "a roll-over of one that never gets so far",
        limits(10, 3, 2),
        none(),
        &[size(8, 8), waiting(5, 5, 0)],
        &[8, 0],
    );
    check("it has not deleted what it should", limits(10, 0, 2), none(), &[waiting(9, 12, 9)], &[9]);
    check("more ready ones than are wanted", limits(8, 0, 2), none(), &[waiting(8, 10, 8)], &[8]);
}

/// Returns how many available pods remain at worst when a ReplicaSet has `to` pods: pods that are not ready go first, then any.
fn at_worst(set: Size, to: i32) -> i32 {
    let mut left = [set.wanted.max(set.ready) - set.ready, set.available, set.ready - set.available];
    let mut surplus = left.iter().sum::<i32>() - to;
    for count in &mut left {
        let gone = surplus.clamp(0, *count);
        *count -= gone;
        surplus -= gone;
    }
    left[1]
}

#[test]
fn no_step_lets_a_replica_set_delete_an_available_pod_that_is_needed() {
    let states = || {
        (0..=5).flat_map(|wanted| {
            (0..=6).flat_map(move |ready| (0..=ready).map(move |available| waiting(wanted, ready, available)))
        })
    };
    let mut shrunk = 0;
    for (desired, surge, unavailable) in [(3, 1, 0), (3, 1, 1), (5, 0, 2), (5, 2, 1)] {
        let limits = limits(desired, surge, unavailable);
        for (older, younger) in states().flat_map(|older| states().map(move |younger| (older, younger))) {
            for new in [size(0, 0), size(1, 1), size(3, 2)] {
                let old = [older, younger];
                let after = old_sizes(limits, new, &old);
                let case = || format!("{limits:?} {new:?} {old:?}: {after:?}");
                let remaining = |to: [i32; 2]| at_worst(older, to[0]) + at_worst(younger, to[1]) + new.available;
                let before = remaining([older.wanted, younger.wanted]);
                let remain = remaining([after[0], after[1]]);
                assert!(remain >= before.min(limits.available_min()), "{}", case());
                shrunk += i32::from(after != [older.wanted, younger.wanted]);
            }
        }
    }
    assert!(shrunk > 50_000, "{shrunk} steps that shrink");
}

/// Old pods become ready and available in time, whichever of them go; new ones in two looks.
#[test]
fn a_roll_out_over_pods_that_wait_gets_through_and_keeps_what_is_available() {
    let mut cases = 0;
    for (desired, surge, unavailable) in [(1, 0, 1), (4, 0, 1), (4, 1, 0), (6, 2, 2), (10, 0, 2), (10, 3, 0)] {
        let limits = limits(desired, surge, unavailable);
        for (ready, available) in (0..=desired).flat_map(|ready| (0..=ready).map(move |count| (ready, count))) {
            let case = || format!("{limits:?}, {ready} ready, {available} available");
            let mut old = waiting(desired, ready, available);
            let mut new = size(0, 0);
            for _ in 0..8 * (desired + surge) + 8 {
                let before = old.available + new.available;
                let to = new_size(limits, new.wanted, new.wanted + old.wanted);
                if to == new.wanted {
                    let to = old_sizes(limits, new, &[old])[0];
                    let ready = old.ready.min(to);
                    old = waiting(to, ready, at_worst(old, to));
                }
                new.wanted = to;
                let least = before.min(limits.available_min());
                assert!(old.available + new.available >= least, "{}: {old:?} {new:?}", case());
                old.available = old.ready;
                new.available = new.ready;
                new.ready = new.wanted;
            }
            assert_eq!((new.wanted, old.wanted), (desired, 0), "{}: it got stuck", case());
            cases += 1;
        }
    }
    assert!(cases > 150, "{cases} cases");
}

/// All small states, including those in which status and spec disagree in either direction.
#[test]
fn no_step_breaks_its_limits_whatever_statuses_say() {
    let mut cases = 0;
    let mut waits = 0;
    let sizes = || (0..=4).flat_map(|wanted| (0..=6).map(move |available| (wanted, available)));
    for (desired, surge, unavailable) in [(0, 1, 0), (1, 1, 0), (2, 0, 1), (3, 1, 1), (4, 2, 0), (4, 1, 2)] {
        let limits = limits(desired, surge, unavailable);
        for (new, older, younger) in sizes().flat_map(|new| {
            sizes().flat_map(move |older| [(0, 0), (2, 0), (2, 2), (2, 5)].map(|younger| (new, older, younger)))
        }) {
            for observed in 0..8 {
                let at = |bit: i32, (wanted, available)| Size {
                    observed: observed >> bit & 1 == 1,
                    ..size(wanted, available)
                };
                let new = at(0, new);
                let old = [at(1, older), at(2, younger)];
                let after = old_sizes(limits, new, &old);
                let case = || format!("{limits:?} {new:?} {old:?}: {after:?}");
                let sum = |count: &dyn Fn(usize) -> i32| (0..2).map(count).sum::<i32>();
                assert!((0..2).all(|set| (0..=old[set].wanted).contains(&after[set])), "{}", case());
                let before = sum(&|set| old[set].remaining()) + new.remaining();
                let remaining = sum(&|set| old[set].remaining().min(after[set])) + new.remaining();
                assert!(remaining >= before.min(limits.available_min()), "{}", case());
                let kept = sum(&|set| after[set]) + new.remaining();
                let held = sum(&|set| old[set].wanted) + new.remaining();
                assert!(kept >= held.min(limits.available_min()), "{}", case());
                let to = new_size(limits, new.wanted, new.wanted + sum(&|set| old[set].wanted));
                let total = to + sum(&|set| old[set].wanted);
                let total_before = new.wanted + sum(&|set| old[set].wanted);
                assert!(total <= total_before.max(limits.total_max()), "{}: {to}", case());
                cases += 1;
                waits += i32::from(after == [old[0].wanted, old[1].wanted]);
            }
        }
    }
    assert!(cases > 200_000 && waits > 10_000, "{cases} cases, {waits} that wait");
}

/// What happens to pods between two steps.
#[derive(Clone, Copy, Debug)]
enum Health {
    /// New pods become available at once.
    Fine,
    /// One new pod becomes available.
    Slow,
    /// New pods never become available.
    Broken,
}

/// One step, as the plan makes it: up, else down.
fn step(limits: Limits, new: &mut Size, old: &mut [Size]) -> bool {
    let total = old.iter().map(|set| set.wanted).sum::<i32>() + new.wanted;
    let to = new_size(limits, new.wanted, total);
    if to != new.wanted {
        new.wanted = to;
        return true;
    }
    let sizes = old_sizes(limits, *new, old);
    let changed = old.iter().zip(&sizes).any(|(set, to)| set.wanted != *to);
    for (set, to) in old.iter_mut().zip(sizes) {
        // A ReplicaSet deletes unavailable pods first.
        *set = size(to, set.available.min(to));
    }
    changed
}

fn fare(health: Health, new: &mut Size) -> bool {
    let before = new.available;
    new.available = match health {
        Health::Fine => new.wanted,
        Health::Slow => (new.available + 1).min(new.wanted),
        Health::Broken => 0,
    };
    new.available != before
}

fn roll_out(limits: Limits, health: Health, mut old: Vec<Size>) {
    let case = format!("{limits:?} {health:?} {old:?}");
    let mut new = size(0, 0);
    let available = |new: &Size, old: &[Size]| new.available + old.iter().map(|set| set.available).sum::<i32>();
    let total = |new: &Size, old: &[Size]| new.wanted + old.iter().map(|set| set.wanted).sum::<i32>();
    let mut may_have = total(&new, &old).max(limits.total_max());
    let well = available(&new, &old) >= limits.available_min();
    // At worst each pod is created or deleted in a step of its own, and becomes available in another.
    let steps_max = 4 * (limits.total_max() + may_have) + 8;
    for _ in 0..steps_max {
        let before = available(&new, &old);
        let stepped = step(limits, &mut new, &mut old);
        assert!(total(&new, &old) <= may_have, "more pods than may be: {case}: {new:?} {old:?}");
        may_have = total(&new, &old).max(limits.total_max());
        let least = before.min(limits.available_min());
        assert!(available(&new, &old) >= least, "too few are available: {case}: {new:?} {old:?}");
        let fared = fare(health, &mut new);
        if !stepped && !fared {
            break;
        }
    }
    assert!(!step(limits, &mut new, &mut old), "it never ends: {case}: {new:?} {old:?}");
    if matches!(health, Health::Broken) {
        assert!(!well || available(&new, &old) >= limits.available_min(), "it broke what was well: {case}: {old:?}");
        return;
    }
    let left: i32 = old.iter().map(|set| set.wanted).sum();
    assert_eq!((new.wanted, left), (limits.desired, 0), "it got stuck: {case}: {new:?} {old:?}");
}

#[test]
fn every_roll_out_keeps_its_limits_and_gets_through() {
    let mut cases = 0;
    for desired in 0..=9 {
        for surge in 0..=4 {
            for unavailable in i32::from(surge == 0)..=4 {
                let limits = limits(desired, surge, unavailable.min(desired));
                for unwell in 0..=desired {
                    for older in 0..=desired.min(3) {
                        let sick = unwell.min(older);
                        let old =
                            vec![size(older, older - sick), size(desired - older, desired - older - (unwell - sick))];
                        for health in [Health::Fine, Health::Slow, Health::Broken] {
                            roll_out(limits, health, old.clone());
                            cases += 1;
                        }
                    }
                }
            }
        }
    }
    assert!(cases > 9_000, "{cases} cases");
}
