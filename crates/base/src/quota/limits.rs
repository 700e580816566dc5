//! The bounds of LimitRanges: least, most, and ratio of limit to request.

use serde::Deserialize;

use super::pod::of;
use super::{Amounts, Pod, VolumeClaim};
use crate::null::as_default;
use crate::{Istr, Quantity};

/// The part of a LimitRange that is enforced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct LimitRange {
    /// The spec.
    #[serde(deserialize_with = "as_default")]
    pub spec: LimitRangeSpec,
}

/// The spec of a LimitRange.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct LimitRangeSpec {
    /// The bounds.
    #[serde(deserialize_with = "as_default")]
    pub limits: Vec<Limit>,
}

/// The bounds of one type of object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Limit {
    /// `Container`, `Pod` or `PersistentVolumeClaim`.
    #[serde(rename = "type", deserialize_with = "as_default")]
    pub type_: Istr,
    /// The least amounts.
    #[serde(deserialize_with = "as_default")]
    pub min: Amounts,
    /// The greatest amounts.
    #[serde(deserialize_with = "as_default")]
    pub max: Amounts,
    /// The greatest ratios of limit to request.
    #[serde(deserialize_with = "as_default")]
    pub max_limit_request_ratio: Amounts,
}

/// Beyond this, thousandths do not fit: upstream compares whole numbers then.
const MILLI_VALUE_MAX: i64 = i64::MAX / 1000;

// === impl LimitRange ===

impl LimitRange {
    /// Checks a pod and its containers.
    ///
    /// # Errors
    /// The messages of upstream, one or more.
    pub fn check_pod(&self, pod: &Pod) -> Result<(), String> {
        let mut problems = Vec::new();
        for limit in &self.spec.limits {
            match &*limit.type_ {
                "Container" => {
                    for container in pod.spec.containers.iter().chain(&pod.spec.init_containers) {
                        limit.check(&container.resources.requests, &container.resources.limits, &mut problems);
                    }
                }
                "Pod" => {
                    let with_pod_level = |mut amounts: Amounts, of_pod: &Amounts| {
                        let own = of_pod.iter().filter(|(name, _)| matches!(&***name, "cpu" | "memory"));
                        amounts.extend(own.map(|(name, quantity)| (name.clone(), *quantity)));
                        amounts
                    };
                    let requests = with_pod_level(pod.requested(), &pod.spec.resources.requests);
                    let limits = with_pod_level(pod.limited(), &pod.spec.resources.limits);
                    limit.check(&requests, &limits, &mut problems);
                }
                _ => {}
            }
        }
        aggregate(problems)
    }

    /// Checks a claim of storage.
    ///
    /// # Errors
    /// The messages of upstream, one or more.
    pub fn check_claim(&self, claim: &VolumeClaim) -> Result<(), String> {
        let mut problems = Vec::new();
        let requests = &claim.spec.resources.requests;
        for limit in self.spec.limits.iter().filter(|limit| limit.type_ == "PersistentVolumeClaim") {
            let least =
                limit.min.iter().filter_map(|(name, bound)| limit.below(name, *bound, requests, &Amounts::new()));
            let most = limit.max.iter().filter_map(|(name, bound)| limit.request_above(name, *bound, requests));
            problems.extend(least.chain(most));
        }
        aggregate(problems)
    }
}

// === impl Limit ===

impl Limit {
    fn check(&self, requests: &Amounts, limits: &Amounts, problems: &mut Vec<String>) {
        problems.extend(self.min.iter().filter_map(|(name, bound)| self.below(name, *bound, requests, limits)));
        problems.extend(self.max.iter().filter_map(|(name, bound)| self.above(name, *bound, requests, limits)));
        let ratios = self.max_limit_request_ratio.iter();
        problems.extend(ratios.filter_map(|(name, bound)| self.beyond_ratio(name, *bound, requests, limits)));
    }

    fn below(&self, name: &str, bound: Quantity, requests: &Amounts, limits: &Amounts) -> Option<String> {
        let bounded = format!("minimum {name} usage per {} is {bound}", self.type_);
        let Some(request) = requests.get(name) else { return Some(format!("{bounded}.  No request is specified")) };
        let limit = limits.get(name);
        let (asked, limited, least) = comparable(*request, of(limits, name), bound);
        if asked < least {
            return Some(format!("{bounded}, but request is {request}"));
        }
        limit.filter(|_| limited < least).map(|limit| format!("{bounded}, but limit is {limit}"))
    }

    fn above(&self, name: &str, bound: Quantity, requests: &Amounts, limits: &Amounts) -> Option<String> {
        let bounded = format!("maximum {name} usage per {} is {bound}", self.type_);
        let Some(limit) = limits.get(name) else { return Some(format!("{bounded}.  No limit is specified")) };
        let request = requests.get(name);
        let (asked, limited, most) = comparable(of(requests, name), *limit, bound);
        if limited > most {
            return Some(format!("{bounded}, but limit is {limit}"));
        }
        request.filter(|_| asked > most).map(|request| format!("{bounded}, but request is {request}"))
    }

    fn request_above(&self, name: &str, bound: Quantity, requests: &Amounts) -> Option<String> {
        let bounded = format!("maximum {name} usage per {} is {bound}", self.type_);
        let Some(request) = requests.get(name) else { return Some(format!("{bounded}.  No request is specified")) };
        let (asked, _, most) = comparable(*request, Quantity::ZERO, bound);
        (asked > most).then(|| format!("{bounded}, but request is {request}"))
    }

    fn beyond_ratio(&self, name: &str, bound: Quantity, requests: &Amounts, limits: &Amounts) -> Option<String> {
        let bounded = format!("{name} max limit to request ratio per {} is {bound}", self.type_);
        let (asked, limited, _) = comparable(of(requests, name), of(limits, name), bound);
        if asked == 0 {
            return Some(format!("{bounded}, but no request is specified or request is 0"));
        }
        if limited == 0 {
            return Some(format!("{bounded}, but no limit is specified or limit is 0"));
        }
        let ratio = limited as f64 / asked as f64;
        let is_beyond = if bound.value() <= MILLI_VALUE_MAX {
            ratio * 1000.0 > bound.milli_value() as f64
        } else {
            ratio > bound.value() as f64
        };
        is_beyond.then(|| format!("{bounded}, but provided ratio is {ratio:.6}"))
    }
}

/// Returns quantities in one unit: thousandths, if all of them fit.
fn comparable(request: Quantity, limit: Quantity, bound: Quantity) -> (i64, i64, i64) {
    let values = (request.value(), limit.value(), bound.value());
    if values.0 <= MILLI_VALUE_MAX && values.1 <= MILLI_VALUE_MAX && values.2 <= MILLI_VALUE_MAX {
        return (request.milli_value(), limit.milli_value(), bound.milli_value());
    }
    values
}

/// Returns the problems as one: each once, and several in brackets, as upstream.
fn aggregate(problems: Vec<String>) -> Result<(), String> {
    let mut distinct: Vec<String> = Vec::new();
    for problem in problems {
        if !distinct.contains(&problem) {
            distinct.push(problem);
        }
    }
    match distinct.len() {
        0 => Ok(()),
        1 => Err(distinct.remove(0)),
        _ => Err(format!("[{}]", distinct.join(", "))),
    }
}
