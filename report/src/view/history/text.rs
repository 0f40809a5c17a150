//! A program over its commits as text for a terminal: the verdict, what changed, the series.

use crate::view::paint::{self, Paint};
use crate::view::table::{self, Column, wrap};
use crate::view::text::TextOptions;
use crate::words;
use crate::words::history as said;
use ompfuse_compare::Quantity;
use ompfuse_compare::history::{ChangePoint, Curve, History, Series};

/// Series that have a line.
const SERIES: usize = 4;

const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The history as text, lines ending in a line feed. `options.top`: changes that are listed.
pub fn text(history: &History, options: TextOptions) -> String {
    let view = View {
        width: paint::width(options.width),
        paint: Paint { on: options.colour },
        top: options.top,
    };
    let mut sections = vec![view.head(history)];
    sections.extend(view.changes(history));
    sections.push(view.series(history));
    sections.extend(view.notes(history));
    sections.join("\n")
}

/// A change with what it is of.
struct Row<'h> {
    series: &'h Series,
    curve: &'h Curve,
    change: &'h ChangePoint,
}

struct View {
    width: usize,
    paint: Paint,
    top: usize,
}

impl View {
    fn head(&self, history: &History) -> String {
        let lines = words::history_verdict(history);
        let lines = lines.iter().flat_map(|line| {
            let wrapped = wrap(line, self.width, "  ");
            wrapped
                .lines()
                .map(|l| self.paint.bold(l) + "\n")
                .collect::<Vec<_>>()
        });
        lines.collect()
    }

    /// The newest first; of one commit the program's first.
    fn changes(&self, history: &History) -> Option<String> {
        let mut rows: Vec<Row<'_>> = vec![];
        for series in &history.series {
            let mut own: Vec<Row<'_>> = (series.curves.iter())
                .flat_map(|curve| {
                    curve.changes.iter().map(move |change| Row {
                        series,
                        curve,
                        change,
                    })
                })
                .collect();
            own.sort_by_key(|row| std::cmp::Reverse(row.change.at));
            rows.extend(own);
        }
        if rows.is_empty() {
            return None;
        }
        let is_many = history.machines.len() > 1;
        let cells = |row: &Row<'_>| {
            let at = &row.series.commits[row.change.at as usize];
            let machine = match (is_many, &row.series.machine) {
                (true, Some(machine)) => said::processor(machine).to_owned(),
                _ => String::new(),
            };
            vec![
                said::commit(at),
                said::day(at).unwrap_or_default(),
                said::curve_place(row.curve),
                words::quantity(&row.curve.quantity),
                said::change_size(row.curve, row.change),
                said::change_interval(row.curve, row.change),
                said::change_range(row.series, row.change).unwrap_or_default(),
                machine,
            ]
        };
        let listed = rows.iter().take(self.top).map(cells);
        let columns = [
            Column::left("since"),
            Column::left("date").leaves(3),
            Column::left("where").keeps_place(16),
            Column::left("what"),
            Column::right("change"),
            Column::left("95% interval").leaves(2),
            Column::left("may be from").leaves(4),
            Column::left("processor").keeps_front(8).leaves(1),
        ];
        let coloured = |column: usize, cell: &str| match column {
            4 => self.paint.bold(cell),
            _ => cell.to_owned(),
        };
        let head = |line: &str| self.paint.dim(line);
        let mut listed: Vec<Vec<String>> = listed.collect();
        // Columns without a word say nothing.
        let kept: Vec<usize> = (0..columns.len())
            .filter(|&c| listed.iter().any(|row| !row[c].is_empty()))
            .collect();
        for row in &mut listed {
            *row = kept.iter().map(|&c| row[c].clone()).collect();
        }
        let columns: Vec<Column<'_>> = kept.iter().map(|&c| columns[c]).collect();
        let style = |column: usize, cell: &str| coloured(kept[column], cell);
        let fitted = table::fitted(&columns, listed, Some(self.width), &style, &head);
        let missing = fitted.missing("wider lines, or --format json");
        let missing = missing.map_or(String::new(), |line| wrap(&line, self.width, "  "));
        let more = match rows.len().saturating_sub(self.top) {
            0 => String::new(),
            n => format!("{n} more; --top lists more, --format json has all\n"),
        };
        let about = "the level from this commit on differs from the one before";
        Some(self.paint.titled("What changed", about, self.width) + &fitted.text + &missing + &more)
    }

    fn series(&self, history: &History) -> String {
        let mut text = self
            .paint
            .titled("Series", "commits that can be compared", self.width);
        for series in history.series.iter().take(SERIES) {
            text += &wrap(&said::series_of(series), self.width, "  ");
            let Some(curve) = series.headline() else {
                continue;
            };
            let noise = said::curve_noise(curve).map_or(String::new(), |n| format!("  {n}"));
            let name = words::quantity(&curve.quantity);
            let room = self
                .width
                .saturating_sub(noise.chars().count() + name.len() + 4);
            if let Some(line) = sparkline(&curve.values, room) {
                text += &format!(
                    "  {name}  {}{}\n",
                    self.paint.with("36", &line),
                    self.paint.dim(&noise)
                );
            }
            let is_whole =
                |c: &&Curve| c.region.is_none() && c.quantity == Quantity::ParallelEfficiency;
            let efficiency = series.curves.iter().find(is_whole);
            if let Some(efficiency) = efficiency {
                let line = format!(
                    "parallel efficiency: {}",
                    said::curve_verdict(series, efficiency)
                );
                let lines = wrap(&line, self.width - 2, "  ");
                text.extend(lines.lines().map(|l| format!("  {l}\n")));
            }
        }
        match history.series.len().saturating_sub(SERIES) {
            0 => text,
            n => text + &format!("{n} more; --html and --format json have all\n"),
        }
    }

    fn notes(&self, history: &History) -> Option<String> {
        let notes = words::history_notes(history);
        let lines = notes
            .iter()
            .map(|note| wrap(&format!("- {note}"), self.width, "  "));
        let lines: String = lines.collect();
        (!lines.is_empty()).then(|| format!("{}\n{lines}", self.paint.bold("Mind")))
    }
}

/// Values as small columns from the least to the largest; the newest ones, as many as there is room for. `None`: all are the same.
fn sparkline(values: &[Option<f64>], width: usize) -> Option<String> {
    let known = values.iter().flatten().copied();
    let (low, high) = known.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| {
        (l.min(v), h.max(v))
    });
    let newest = &values[values.len().saturating_sub(width)..];
    let column = |value: &Option<f64>| match value {
        None => ' ',
        Some(value) => LEVELS[((value - low) / (high - low) * 7.0).round() as usize],
    };
    (high > low).then(|| newest.iter().map(column).collect())
}

#[cfg(test)]
mod tests {
    use super::sparkline;

    #[test]
    fn columns_go_from_the_least_to_the_largest() {
        let line = |values: &[Option<f64>], width| sparkline(values, width).unwrap_or_default();
        assert_eq!(line(&[Some(1.0), None, Some(8.0), Some(4.5)], 9), "▁ █▅");
        assert_eq!(line(&[Some(1.0), Some(2.0), Some(2.0)], 2), "██");
        assert_eq!(line(&[Some(3.0), Some(3.0)], 9), "");
    }
}
