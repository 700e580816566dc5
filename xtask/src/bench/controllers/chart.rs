//! The chart of the README: CPU and memory of both managers, as SVG by hand.
//!
//! 1. It is self-contained: no script, no font, no background, so that it fits a light page and a dark one.
//! 2. Each panel has a scale of its own that starts at zero, and every bar has its figure beside it.

use std::fmt::Write;

use crate::bench::Measurement;

const WIDTH: usize = 760;
const PANEL_WIDTH: usize = 360;
/// For the longest bar; its figure stands behind it.
const BAR_WIDTH_MAX: f64 = 270.0;
const BAR_HEIGHT: usize = 12;
/// A label and two bars.
const GROUP_HEIGHT: usize = 56;
const TOP: usize = 104;
const BOTTOM: usize = 12;

/// Bars of one unit: what each is called here, and the bench that it shows.
struct Panel {
    title: &'static str,
    groups: &'static [(&'static str, &'static str)],
}

const PANELS: [Panel; 2] = [
    Panel {
        title: "CPU of the manager",
        groups: &[
            ("2,000 pods rolled out", "roll-out, CPU"),
            ("4,000 pod status changes", "status changes, CPU"),
            ("2,000 pods cascade-deleted", "cascade delete, CPU"),
            ("restart with 30,000 pods", "restart, CPU"),
        ],
    },
    Panel {
        title: "Memory of the manager (resident)",
        groups: &[
            ("idle", "memory, idle"),
            ("peak of roll-out, changes, deletes", "memory, peak of the run"),
            ("peak of the restart with 30,000 pods", "restart, memory, peak"),
        ],
    },
];

const STYLE: &str = "\
text{font:13px system-ui,sans-serif;fill:#1f2328}.h{font-size:15px;font-weight:600}.l{fill:#59636e}\
.o{fill:#c2410c}.g{fill:#8c959f}\
@media(prefers-color-scheme:dark){text{fill:#f0f6fc}.l{fill:#9198a1}.o{fill:#fb923c}.g{fill:#656c76}}";

/// The chart; what was not measured is left out.
pub(super) fn svg(version: &str, ours: &[Measurement], go: &[Measurement]) -> String {
    let rows = PANELS.iter().map(|panel| panel.groups.len()).max().unwrap_or_default();
    let height = TOP + rows * GROUP_HEIGHT + BOTTOM;
    let mut body = String::new();
    for (panel, left) in PANELS.iter().zip([8, WIDTH - PANEL_WIDTH]) {
        body += &panel.svg(left, ours, go);
    }
    let title = format!("Steersman beside kube-controller-manager {version}");
    format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" role="img">
<title>{title}: CPU and memory</title>
<style>{STYLE}</style>
<text x="8" y="22" class="h">{title}</text>
<text x="8" y="42" class="l">the same controllers, flags and load on kube-apiserver and etcd; shorter is better</text>
<rect x="8" y="54" width="12" height="12" rx="2" class="o"/><text x="26" y="65">steersman controller-manager</text>
<rect x="248" y="54" width="12" height="12" rx="2" class="g"/><text x="266" y="65">kube-controller-manager (Go)</text>
{body}</svg>
"#
    )
}

// === impl Panel ===

impl Panel {
    fn svg(&self, left: usize, ours: &[Measurement], go: &[Measurement]) -> String {
        let of = |figures: &[Measurement], bench: &str| figures.iter().find(|figure| figure.bench == bench).cloned();
        let groups = self.groups.iter().map(|(label, bench)| (*label, of(ours, bench), of(go, bench)));
        let groups: Vec<_> = groups.collect();
        let values = groups.iter().flat_map(|(_, ours, go)| [ours, go]).flatten().map(|figure| figure.value);
        // Not zero, so that nothing is divided by it.
        let longest = values.fold(f64::MIN_POSITIVE, f64::max);
        let mut text = format!("<text x=\"{left}\" y=\"{}\" class=\"h\">{}</text>\n", TOP - 12, self.title);
        for (row, (label, ours, go)) in groups.into_iter().enumerate() {
            let y = TOP + row * GROUP_HEIGHT;
            let _ = writeln!(text, "<text x=\"{left}\" y=\"{}\" class=\"l\">{label}</text>", y + 12);
            for (figure, class, y) in [(ours, "o", y + 18), (go, "g", y + 18 + BAR_HEIGHT + 2)] {
                let Some(figure) = figure else { continue };
                // A thin line is still a bar.
                let width = (figure.value / longest * BAR_WIDTH_MAX).max(1.0);
                let end = left as f64 + width + 6.0;
                let base = y + BAR_HEIGHT - 2;
                let _ = writeln!(
                    text,
                    "<rect x=\"{left}\" y=\"{y}\" width=\"{width:.1}\" height=\"{BAR_HEIGHT}\" rx=\"2\" class=\"{class}\"/>\
                     <text x=\"{end:.1}\" y=\"{base}\">{}</text>",
                    shown(&figure)
                );
            }
        }
        text
    }
}

fn shown(figure: &Measurement) -> String {
    let digits = if figure.value < 10.0 { 2 } else { 0 };
    format!("{:.digits$} {}", figure.value, figure.unit)
}

#[cfg(test)]
mod tests {
    use super::{BAR_WIDTH_MAX, svg};
    use crate::bench::Measurement;

    fn figure(bench: &str, value: f64, unit: &str) -> Measurement {
        Measurement { bench: bench.to_owned(), value, unit: unit.to_owned(), of_peer: false }
    }

    #[test]
    fn the_longest_bar_fills_its_panel_and_the_others_are_in_proportion() {
        let chart = svg("v1", &[figure("roll-out, CPU", 0.5, "s")], &[figure("roll-out, CPU", 2.0, "s")]);
        for (width, shown) in [(BAR_WIDTH_MAX / 4.0, "0.50 s"), (BAR_WIDTH_MAX, "2.00 s")] {
            assert!(chart.contains(&format!("width=\"{width:.1}\" height")), "{width}: {chart}");
            assert!(chart.contains(&format!(">{shown}</text>")), "{shown}: {chart}");
        }
    }

    #[test]
    fn what_was_not_measured_has_a_label_and_no_bar() {
        let chart = svg("v1", &[], &[]);
        assert_eq!(chart.matches("<rect").count(), 2, "the legend only: {chart}");
        assert!(chart.contains("restart with 30,000 pods"));
    }
}
