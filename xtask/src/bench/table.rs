//! Tables in Markdown: they read well on a terminal and in `docs/benchmarks.md`.

use std::fmt;

use super::Measurement;

/// One bench, ours and the peer's.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) ours: Measurement,
    pub(super) peer: Option<f64>,
    /// The goal.
    pub(super) goal: Option<&'static str>,
}

/// The result of a suite.
#[derive(Debug)]
pub(super) struct Table {
    header: Vec<String>,
    cells: Vec<Vec<String>>,
}

// === impl Row ===

impl Row {
    /// The ratio to the peer: larger means faster, or less memory. None if one of both has nothing.
    fn ratio(&self) -> Option<f64> {
        let higher_is_better = self.ours.unit.ends_with("/s");
        let ratio =
            self.peer.map(|peer| if higher_is_better { self.ours.value / peer } else { peer / self.ours.value });
        ratio.filter(|ratio| ratio.is_finite())
    }
}

// === impl Table ===

impl Table {
    /// Without a peer.
    pub(super) fn alone(rows: Vec<Row>) -> Self {
        Self::new(None, rows)
    }

    /// With the ratio: how many times as good as the peer we are.
    pub(super) fn beside(peer: &str, rows: Vec<Row>) -> Self {
        Self::new(Some(peer), rows)
    }

    /// As it is given: a name and figures in each row.
    pub(super) fn plain(header: Vec<String>, cells: Vec<Vec<String>>) -> Self {
        Self { header, cells }
    }

    /// There is a column of goals where there are any.
    fn new(peer: Option<&str>, rows: Vec<Row>) -> Self {
        let has_goals = rows.iter().any(|row| row.goal.is_some());
        let header = ["benchmark", "steersman"].into_iter().chain(peer).chain(peer.map(|_| "ratio"));
        let header = header.chain(has_goals.then_some("goal")).map(str::to_owned).collect();
        let cells = rows.into_iter().map(|row| {
            let shown = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
            let mut cells = vec![row.ours.bench.clone(), figure(row.ours.value, &row.ours.unit)];
            if peer.is_some() {
                cells.push(shown(row.peer.map(|peer| figure(peer, &row.ours.unit))));
                cells.push(shown(row.ratio().map(|ratio| format!("{ratio:.1} ×"))));
            }
            if has_goals {
                cells.push(shown(row.goal.map(str::to_owned)));
            }
            cells
        });
        Self { header, cells: cells.collect() }
    }

    fn widths(&self) -> Vec<usize> {
        let rows = || std::iter::once(&self.header).chain(&self.cells);
        (0..self.header.len())
            .map(|column| rows().map(|row| row[column].chars().count()).max().unwrap_or_default())
            .collect()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        let line = |row: &[String]| {
            let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
                // Names to the left, figures to the right.
                if column == 0 { format!(" {cell:<width$} ") } else { format!(" {cell:>width$} ") }
            });
            format!("|{}|", cells.collect::<Vec<_>>().join("|"))
        };
        writeln!(f, "{}", line(&self.header))?;
        let rules = widths.iter().enumerate().map(|(column, width)| {
            let rule = "-".repeat(width + 1);
            if column == 0 { format!("-{rule}") } else { format!("{rule}:") }
        });
        writeln!(f, "|{}|", rules.collect::<Vec<_>>().join("|"))?;
        self.cells.iter().try_for_each(|row| writeln!(f, "{}", line(row)))
    }
}

/// Three significant digits; more would be noise.
fn figure(value: f64, unit: &str) -> String {
    let number = match value.abs() {
        size if size >= 100.0 => grouped(value),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    };
    format!("{number} {unit}").trim_end().to_owned()
}

/// Whole, with a comma every three digits.
fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 { format!("-{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::{Measurement, Row, Table, figure};

    #[test]
    fn figures_have_about_three_digits() {
        for (value, want) in
            [(1.234, "1.23 ns"), (45.67, "45.7 ns"), (123.4, "123 ns"), (1_234_567.0, "1,234,567 ns"), (0.0, "0.00 ns")]
        {
            assert_eq!(figure(value, "ns"), want);
        }
    }

    fn row(bench: &str, value: f64, unit: &str, peer: Option<f64>, goal: Option<&'static str>) -> Row {
        let ours = Measurement { bench: bench.to_owned(), value, unit: unit.to_owned(), of_peer: false };
        Row { ours, peer, goal }
    }

    #[test]
    fn more_per_second_is_better_and_less_of_anything_else() {
        for (unit, want) in [("ns", 4.0), ("MB", 4.0), ("/s", 0.25), ("MB/s", 0.25)] {
            assert_eq!(row("a", 2.0, unit, Some(8.0), None).ratio(), Some(want), "{unit}");
        }
    }

    #[test]
    fn there_is_no_ratio_to_nothing() {
        assert_eq!(row("a", 0.0, "calls", Some(8.0), None).ratio(), None);
        assert_eq!(row("a", 0.0, "calls", Some(0.0), None).ratio(), None);
    }

    #[test]
    fn goals_have_a_column_where_there_are_any() {
        let rows = || vec![row("list", 9.0, "MB/s", Some(3.0), Some("≥ 3 ×")), row("kept", 1.0, "MB", None, None)];
        assert_eq!(
            Table::beside("peer", rows()).to_string(),
            "| benchmark | steersman |      peer | ratio |  goal |\n\
             |-----------|----------:|----------:|------:|------:|\n\
             | list      | 9.00 MB/s | 3.00 MB/s | 3.0 × | ≥ 3 × |\n\
             | kept      |   1.00 MB |         – |     – |     – |\n"
        );
        assert_eq!(
            Table::alone(rows()).to_string(),
            "| benchmark | steersman |  goal |\n\
             |-----------|----------:|------:|\n\
             | list      | 9.00 MB/s | ≥ 3 × |\n\
             | kept      |   1.00 MB |     – |\n"
        );
    }

    #[test]
    fn a_table_shows_the_ratio_and_aligns() {
        let row = |bench: &str, value, peer| row(bench, value, "ns", peer, None);
        let table = Table::beside("client-go", vec![row("add", 50.0, Some(150.0)), row("longer_name", 8.0, None)]);
        assert_eq!(
            table.to_string(),
            "| benchmark   | steersman | client-go | ratio |\n\
             |-------------|----------:|----------:|------:|\n\
             | add         |   50.0 ns |    150 ns | 3.0 × |\n\
             | longer_name |   8.00 ns |         – |     – |\n"
        );
    }
}
