//! The metrics of the process, under the names of client_golang's process collector. They are read from `/proc` when
//! gathered; without `/proc` there are none.

use std::fs;

use prometheus::Registry;
use prometheus::core::{Collector, Desc};
use prometheus::proto::{Counter, Gauge, Metric, MetricFamily, MetricType};

/// The collector. Several managers of one process may each have one, with the same values.
#[derive(Debug)]
pub struct ProcessMetrics {
    families: Vec<(Desc, Row)>,
}

/// One metric of the table.
#[derive(Clone, Copy, Debug)]
struct Row {
    name: &'static str,
    help: &'static str,
    kind: MetricType,
    value: fn(&Facts) -> Option<f64>,
}

/// The contents of `/proc`. Files that cannot be read or parsed are absent.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) stat: String,
    pub(super) system_stat: String,
    pub(super) status: String,
    pub(super) limits: String,
    pub(super) netstat: String,
    pub(super) open_fds: Option<usize>,
}

/// `USER_HZ`: the unit in which the kernel shows times of processes, on every architecture that Rust supports.
const TICKS_PER_SECOND: f64 = 100.0;

const ROWS: [Row; 9] = [
    Row {
        name: "process_cpu_seconds_total",
        help: "Total user and system CPU time spent in seconds.",
        kind: MetricType::COUNTER,
        value: Facts::cpu,
    },
    Row {
        name: "process_max_fds",
        help: "Maximum number of open file descriptors.",
        kind: MetricType::GAUGE,
        value: |facts| facts.limit("Max open files"),
    },
    Row {
        name: "process_network_receive_bytes_total",
        help: "Number of bytes received by the process over the network.",
        kind: MetricType::COUNTER,
        value: |facts| facts.network("InOctets"),
    },
    Row {
        name: "process_network_transmit_bytes_total",
        help: "Number of bytes sent by the process over the network.",
        kind: MetricType::COUNTER,
        value: |facts| facts.network("OutOctets"),
    },
    Row {
        name: "process_open_fds",
        help: "Number of open file descriptors.",
        kind: MetricType::GAUGE,
        value: |facts| facts.open_fds.map(|count| count as f64),
    },
    Row {
        name: "process_resident_memory_bytes",
        help: "Resident memory size in bytes.",
        kind: MetricType::GAUGE,
        value: |facts| facts.status_bytes("VmRSS:"),
    },
    Row {
        name: "process_start_time_seconds",
        help: "Start time of the process since unix epoch in seconds.",
        kind: MetricType::GAUGE,
        value: Facts::started,
    },
    Row {
        name: "process_virtual_memory_bytes",
        help: "Virtual memory size in bytes.",
        kind: MetricType::GAUGE,
        value: |facts| facts.stat_field(20),
    },
    Row {
        name: "process_virtual_memory_max_bytes",
        help: "Maximum amount of virtual memory available in bytes.",
        kind: MetricType::GAUGE,
        value: |facts| facts.limit("Max address space"),
    },
];

/// Returns the CPU seconds of this process; `None` without `/proc`.
pub(crate) fn process_cpu() -> Option<f64> {
    let facts = Facts { stat: fs::read_to_string("/proc/self/stat").ok()?, ..Facts::default() };
    facts.cpu()
}

// === impl ProcessMetrics ===

impl ProcessMetrics {
    /// Registers the collector.
    ///
    /// # Errors
    /// The registry has it already.
    pub fn register(registry: &Registry) -> Result<(), prometheus::Error> {
        let desc = |row: Row| {
            let desc = Desc::new(row.name.to_owned(), row.help.to_owned(), Vec::new(), Default::default())?;
            Ok((desc, row))
        };
        let families = ROWS.into_iter().map(desc).collect::<Result<_, prometheus::Error>>()?;
        registry.register(Box::new(Self { families }))
    }
}

impl Collector for ProcessMetrics {
    fn desc(&self) -> Vec<&Desc> {
        self.families.iter().map(|(desc, _)| desc).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let facts = Facts::read();
        self.families.iter().filter_map(|(_, row)| Some(row.family((row.value)(&facts)?))).collect()
    }
}

// === impl Row ===

impl Row {
    fn family(self, value: f64) -> MetricFamily {
        let mut metric = Metric::default();
        if self.kind == MetricType::COUNTER {
            let mut counter = Counter::default();
            counter.set_value(value);
            metric.set_counter(counter);
        } else {
            let mut gauge = Gauge::default();
            gauge.set_value(value);
            metric.set_gauge(gauge);
        }
        let mut family = MetricFamily::default();
        family.set_name(self.name.to_owned());
        family.set_help(self.help.to_owned());
        family.set_field_type(self.kind);
        family.set_metric(vec![metric]);
        family
    }
}

// === impl Facts ===

impl Facts {
    /// Reads a few files of the kernel, which never wait for a disk.
    fn read() -> Self {
        let file = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Self {
            stat: file("/proc/self/stat"),
            system_stat: file("/proc/stat"),
            status: file("/proc/self/status"),
            limits: file("/proc/self/limits"),
            netstat: file("/proc/self/net/netstat"),
            // One of them is the directory being read.
            open_fds: fs::read_dir("/proc/self/fd").ok().map(|all| all.count().saturating_sub(1)),
        }
    }

    /// Returns a field of `/proc/self/stat`, counted from the one behind the program's name, which may contain spaces
    /// and brackets.
    fn stat_field(&self, index: usize) -> Option<f64> {
        let (_, fields) = self.stat.rsplit_once(')')?;
        fields.split_ascii_whitespace().nth(index)?.parse().ok()
    }

    /// Fields 14 and 15 of proc_pid_stat(5), counted from the third.
    fn cpu(&self) -> Option<f64> {
        Some((self.stat_field(11)? + self.stat_field(12)?) / TICKS_PER_SECOND)
    }

    pub(super) fn started(&self) -> Option<f64> {
        let booted = self.system_stat.lines().find_map(|line| line.strip_prefix("btime "))?;
        Some(booted.trim().parse::<f64>().ok()? + self.stat_field(19)? / TICKS_PER_SECOND)
    }

    /// Returns a size of `/proc/self/status`, which is in KiB whatever the size of a page.
    fn status_bytes(&self, name: &str) -> Option<f64> {
        let line = self.status.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim().strip_suffix(" kB")?.trim().parse::<f64>().ok()? * 1024.0)
    }

    /// Returns a soft limit. Without one, client_golang returns the largest number.
    fn limit(&self, name: &str) -> Option<f64> {
        let line = self.limits.lines().find_map(|line| line.strip_prefix(name))?;
        match line.split_ascii_whitespace().next()? {
            "unlimited" => Some(u64::MAX as f64),
            number => number.parse().ok(),
        }
    }

    /// Returns a figure of `IpExt`: a line of names, then a line of figures.
    fn network(&self, name: &str) -> Option<f64> {
        let mut lines = self.netstat.lines().filter_map(|line| line.strip_prefix("IpExt:"));
        let names = lines.next()?;
        let figures = lines.next()?;
        let at = names.split_ascii_whitespace().position(|each| each == name)?;
        figures.split_ascii_whitespace().nth(at)?.parse().ok()
    }

    #[cfg(test)]
    pub(super) fn values(&self) -> Vec<(&'static str, Option<f64>)> {
        ROWS.iter().map(|row| (row.name, (row.value)(self))).collect()
    }
}
