//! Tables in Markdown: they read well on a terminal and in `docs/benchmarks.md`.

use std::fmt;

use super::Measurement;

/// One bench, ours and the peer's.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) ours: Measurement,
    pub(super) peer: Option<f64>,
}

/// The result of a suite.
#[derive(Debug)]
pub(super) struct Table {
    header: Vec<String>,
    cells: Vec<Vec<String>>,
}

// === impl Table ===

impl Table {
    /// Without a peer.
    pub(super) fn alone(rows: Vec<Row>) -> Self {
        let header = ["benchmark", "steersman"].map(str::to_owned).to_vec();
        let cells = rows.into_iter().map(|row| vec![row.ours.bench, figure(row.ours.value, &row.ours.unit)]);
        Self { header, cells: cells.collect() }
    }

    /// With the ratio: how many times as much the peer takes.
    pub(super) fn beside(peer: &str, rows: Vec<Row>) -> Self {
        let header = ["benchmark", "steersman", peer, "ratio"].map(str::to_owned).to_vec();
        let cells = rows.into_iter().map(|Row { ours, peer }| {
            let absent = || "–".to_owned();
            vec![
                ours.bench,
                figure(ours.value, &ours.unit),
                peer.map_or_else(absent, |peer| figure(peer, &ours.unit)),
                peer.map_or_else(absent, |peer| format!("{:.1} ×", peer / ours.value)),
            ]
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

    #[test]
    fn a_table_shows_the_ratio_and_aligns() {
        let row = |bench: &str, value, peer| Row {
            ours: Measurement { bench: bench.to_owned(), value, unit: "ns".to_owned() },
            peer,
        };
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
