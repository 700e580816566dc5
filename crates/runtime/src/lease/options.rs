//! The options of an election.

use std::time::Duration;

use steersman_base::validation;

/// The options of an election: the lease, the identity, and the times, which are upstream's by default.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseOptions {
    /// The namespace of the lease.
    pub namespace: String,
    /// The name of the lease.
    pub name: String,
    /// The identity of this process, which must be unique; by default it is the name of the host and a random id.
    pub identity: Option<String>,
    /// The time for which others do not take over a lease that is not renewed. In the lease it is rounded up to whole
    /// seconds.
    pub lease_duration: Duration,
    /// The time after its last renewal for which a leader may write. Less than `lease_duration`; the difference covers
    /// differences of clocks and writes in flight.
    pub renew_deadline: Duration,
    /// The time between two tries.
    pub retry_period: Duration,
    /// Whether the lease is given back at the end, so that another process leads within a second. Then the stop signal
    /// must not be given to the elector before all work under the lease has ended.
    pub release_on_exit: bool,
}

/// Invalid options. They are not retried.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LeaseOptionsError {
    /// A time of zero.
    #[error("{0} must be greater than zero")]
    Zero(&'static str),
    /// Others would take over while the leader still writes.
    #[error("the lease duration ({lease_duration:?}) must be greater than the renew deadline ({renew_deadline:?})")]
    DurationTooShort {
        /// The given value.
        lease_duration: Duration,
        /// The given value.
        renew_deadline: Duration,
    },
    /// A leader would give up before it has tried again.
    #[error(
        "the renew deadline ({renew_deadline:?}) must be greater than {JITTER} times the retry period ({retry_period:?})"
    )]
    DeadlineTooShort {
        /// The given value.
        renew_deadline: Duration,
        /// The given value.
        retry_period: Duration,
    },
    /// A duration that does not fit into the lease.
    #[error("the lease duration ({0:?}) must be less than {max} s", max = i32::MAX)]
    DurationTooLong(Duration),
    /// An invalid namespace or name.
    #[error("the {what} of the lease, {value:?}, is wrong: {problem}")]
    Name {
        /// `namespace` or `name`.
        what: &'static str,
        /// The given value.
        value: String,
        /// The problem.
        problem: String,
    },
    /// An empty identity, which means *no holder* in a lease.
    #[error("the identity must not be empty: leave it out to have one made from the host's name")]
    EmptyIdentity,
    /// No identity can be generated, because there are no random numbers.
    #[error("cannot make an identity: the system gives no random numbers; set an identity")]
    NoRandom,
}

/// client-go's `JitterFactor`: a candidate waits one retry period, and up to this many more.
pub(super) const JITTER: f64 = 1.2;
/// client-go's shortest time-out for a request about the lease.
const ANSWER_WITHIN_MIN: Duration = Duration::from_secs(1);

// === impl LeaseOptions ===

impl LeaseOptions {
    /// Creates options for this lease with upstream's times (15 s, 10 s, 2 s); it is not given back at the end.
    #[must_use]
    pub fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            identity: None,
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            release_on_exit: false,
        }
    }

    /// Sets the name under which this process stands for election.
    #[must_use]
    pub fn identity(mut self, identity: impl Into<String>) -> Self {
        self.identity = Some(identity.into());
        self
    }

    /// Sets how long others leave a lease alone that they do not see renewed.
    #[must_use]
    pub fn lease_duration(mut self, time: Duration) -> Self {
        self.lease_duration = time;
        self
    }

    /// Sets how long after its last renewal a leader may write.
    #[must_use]
    pub fn renew_deadline(mut self, time: Duration) -> Self {
        self.renew_deadline = time;
        self
    }

    /// Sets how long to wait between two tries.
    #[must_use]
    pub fn retry_period(mut self, time: Duration) -> Self {
        self.retry_period = time;
        self
    }

    /// Gives the lease back at the end, so that another process leads within a second.
    #[must_use]
    pub fn release_on_exit(mut self) -> Self {
        self.release_on_exit = true;
        self
    }

    /// Whether the options can work.
    ///
    /// # Errors
    /// See [`LeaseOptionsError`]; the first problem is returned.
    pub fn validate(&self) -> Result<(), LeaseOptionsError> {
        let Self { lease_duration, renew_deadline, retry_period, .. } = *self;
        let times = [
            ("the lease duration", lease_duration),
            ("the renew deadline", renew_deadline),
            ("the retry period", retry_period),
        ];
        if let Some((what, _)) = times.into_iter().find(|(_, time)| time.is_zero()) {
            return Err(LeaseOptionsError::Zero(what));
        }
        if lease_duration <= renew_deadline {
            return Err(LeaseOptionsError::DurationTooShort { lease_duration, renew_deadline });
        }
        if renew_deadline.as_secs_f64() <= retry_period.as_secs_f64() * JITTER {
            return Err(LeaseOptionsError::DeadlineTooShort { renew_deadline, retry_period });
        }
        if lease_duration.as_secs() >= u64::from(i32::MAX.unsigned_abs()) {
            return Err(LeaseOptionsError::DurationTooLong(lease_duration));
        }
        let names = [
            ("namespace", &self.namespace, validation::dns1123_label(&self.namespace)),
            ("name", &self.name, validation::dns1123_subdomain(&self.name)),
        ];
        for (what, value, problems) in names {
            if !problems.is_empty() {
                return Err(LeaseOptionsError::Name { what, value: value.clone(), problem: problems.join("; ") });
            }
        }
        if self.identity.as_deref() == Some("") { Err(LeaseOptionsError::EmptyIdentity) } else { Ok(()) }
    }

    /// Returns the duration in the lease, in whole seconds: never less than what this process counts on.
    pub(super) fn lease_seconds(&self) -> i32 {
        let seconds = self.lease_duration.as_secs() + u64::from(self.lease_duration.subsec_nanos() > 0);
        i32::try_from(seconds).unwrap_or(i32::MAX)
    }

    /// Returns the time that a request about the lease may take: client-go's half of the deadline, so that a lost
    /// answer leaves time for a second try.
    pub(super) fn answer_within(&self) -> Duration {
        (self.renew_deadline / 2).max(ANSWER_WITHIN_MIN)
    }
}

/// A name that no other process has: `<host>_<uuid>`, as upstream's components call themselves.
///
/// # Errors
/// [`LeaseOptionsError::NoRandom`].
pub(crate) fn default_identity() -> Result<String, LeaseOptionsError> {
    let mut bytes = [0; 16];
    let random = rustls::crypto::aws_lc_rs::default_provider().secure_random;
    random.fill(&mut bytes).map_err(|_| LeaseOptionsError::NoRandom)?;
    Ok(format!("{}_{}", host_name(), uuid::Builder::from_random_bytes(bytes).into_uuid()))
}

/// For people: what makes an identity one is the uuid. In a pod this is the pod's name.
fn host_name() -> String {
    let kernel = || std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let variable = || std::env::var("HOSTNAME").ok();
    let command = || {
        let output = std::process::Command::new("hostname").output().ok()?;
        String::from_utf8(output.stdout).ok()
    };
    let known = |name: String| Some(name.trim().to_owned()).filter(|name| !name.is_empty());
    let found = kernel().and_then(known).or_else(|| variable().and_then(known)).or_else(|| command().and_then(known));
    found.unwrap_or_else(|| "unknown".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_cannot_work_say_what_is_wrong() {
        let ms = Duration::from_millis;
        let times = |lease: u64, renew: u64, retry: u64| LeaseOptions {
            lease_duration: ms(lease),
            renew_deadline: ms(renew),
            retry_period: ms(retry),
            ..LeaseOptions::new("kube-system", "test")
        };
        let identity =
            |identity: &str| LeaseOptions { identity: Some(identity.to_owned()), ..LeaseOptions::new("ns", "test") };
        for (name, options, want) in [
            ("upstream's", times(15_000, 10_000, 2_000), ""),
            ("short", times(3_000, 2_000, 500), ""),
            ("just enough", times(2_402, 2_401, 2_000), ""),
            ("no duration", times(0, 10_000, 2_000), "the lease duration must be greater than zero"),
            ("no deadline", times(15_000, 0, 2_000), "the renew deadline must be greater than zero"),
            ("no period", times(15_000, 10_000, 0), "the retry period must be greater than zero"),
            (
                "equal",
                times(10_000, 10_000, 2_000),
                "the lease duration (10s) must be greater than the renew deadline (10s)",
            ),
            (
                "no time to retry",
                times(15_000, 2_400, 2_000),
                "the renew deadline (2.4s) must be greater than 1.2 times the retry period (2s)",
            ),
            (
                "for ever",
                times(u64::from(u32::MAX) * 1_000, 10_000, 2_000),
                "the lease duration (4294967295s) must be less than 2147483647 s",
            ),
            ("named", identity("me"), ""),
            (
                "nobody",
                identity(""),
                "the identity must not be empty: leave it out to have one made from the host's name",
            ),
            (
                "no namespace",
                LeaseOptions::new("a.b", "test"),
                "the namespace of the lease, \"a.b\", is wrong: must not contain dots",
            ),
        ] {
            let got = options.validate().err().map(|error| error.to_string()).unwrap_or_default();
            assert_eq!(got, want, "{name}");
        }
        assert!(matches!(LeaseOptions::new("ns", "").validate(), Err(LeaseOptionsError::Name { what: "name", .. })));
    }

    #[test]
    fn a_lease_never_promises_less_than_its_holder_counts_on() {
        for (ms, want) in [(1, 1), (999, 1), (1_000, 1), (1_001, 2), (15_000, 15), (15_900, 16)] {
            let options =
                LeaseOptions { lease_duration: Duration::from_millis(ms), ..LeaseOptions::new("kube-system", "test") };
            assert_eq!(options.lease_seconds(), want, "{ms} ms");
        }
    }

    #[test]
    fn identities_differ_and_name_the_host() {
        let one = default_identity().unwrap();
        let two = default_identity().unwrap();
        assert_ne!(one, two);
        let (host, id) = one.rsplit_once('_').unwrap();
        assert!(!host.is_empty() && !host.contains('\n'));
        assert_eq!(id.parse::<uuid::Uuid>().unwrap().get_version_num(), 4);
    }
}
