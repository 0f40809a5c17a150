//! A series as text for a terminal: the verdict, a table by number of threads, where thread time went, the regions.

use super::bars::{PARTS, lengths};
use crate::view::paint::{self, Paint};
use crate::view::table::{self, Column, wrap};
use crate::view::text::TextOptions;
use crate::words::{self, series_cause, series_location};
use ompfuse_account::model::series::{Scaling, Series, SeriesRegion};
use ompfuse_account::units::{percent, seconds};
use ompfuse_format::Construct;

/// The series as text, lines ending in a line feed.
pub fn text(series: &Series, options: TextOptions) -> String {
    let view = View {
        width: paint::width(options.width),
        paint: Paint { on: options.colour },
        top: options.top,
    };
    let mut sections = vec![view.head(series), view.points(series)];
    sections.extend(view.bars(series));
    sections.extend(view.losses(series));
    sections.extend(view.regions(series));
    sections.extend(view.notes(series));
    sections.join("\n")
}

struct View {
    width: usize,
    paint: Paint,
    top: usize,
}

impl View {
    fn table(&self, columns: &[Column<'_>], rows: Vec<Vec<String>>) -> String {
        let plain = |_: usize, cell: &str| cell.to_owned();
        let head = |line: &str| self.paint.with("2", line);
        let fitted = table::fitted(columns, rows, Some(self.width), &plain, &head);
        let missing = fitted.missing("wider lines, or --format json");
        let missing = missing.map_or(String::new(), |line| wrap(&line, self.width, "  "));
        fitted.text + &missing
    }

    fn head(&self, series: &Series) -> String {
        let mut command = series.program.clone();
        for arg in &series.args {
            command.push(' ');
            command.push_str(arg);
        }
        let numbers: Vec<String> = series
            .points
            .iter()
            .map(|p| p.threads.to_string())
            .collect();
        let scaling = match series.scaling {
            Scaling::Strong => "the same work",
            Scaling::Weak => "work grows with the threads",
        };
        let about = format!("  {} threads · {scaling}", numbers.join(", "));
        let verdict = wrap(&words::series_verdict(series).join(" "), self.width, "");
        let verdict = verdict
            .lines()
            .map(|line| self.paint.with("1", line) + "\n");
        format!(
            "{}\n{}\n",
            table::front(&command, self.width),
            table::front(&about, self.width)
        ) + &verdict.collect::<String>()
    }

    fn points(&self, series: &Series) -> String {
        let is_weak = series.scaling == Scaling::Weak;
        let from = series.points.iter().find_map(|p| p.told);
        let told = from.map_or_else(String::new, |t| format!("predicted by {}", t.from_threads));
        let rows = series.points.iter().map(|p| {
            let spread = p
                .wall
                .deviation_s
                .map_or_else(String::new, |s| format!("±{}", percent(s / p.wall.mean_s)));
            let brought = p.marginal_efficiency.map(|m| format!("{m:.2}"));
            vec![
                p.threads.to_string(),
                p.wall.runs.to_string(),
                seconds(p.wall.mean_s),
                spread,
                format!("{:.2}", p.speedup),
                percent(p.efficiency),
                brought.unwrap_or_default(),
                seconds(p.available_s),
                match is_weak {
                    true => p.work_per_thread_s.map(seconds).unwrap_or_default(),
                    false => p.stack.map(|s| seconds(s.work_s)).unwrap_or_default(),
                },
                p.told.map_or_else(String::new, |t| {
                    let error = 100.0 * (t.of_measured - 1.0);
                    format!("{} ({error:+.0}%)", seconds(t.seconds))
                }),
            ]
        });
        let columns = [
            Column::right("threads"),
            Column::right("runs").leaves(3),
            Column::right("own time"),
            Column::right("").leaves(4),
            Column::right("speed-up"),
            Column::right("efficiency"),
            Column::right("a thread more").leaves(2),
            Column::right("thread time").leaves(5),
            Column::right(if is_weak { "work/thread" } else { "work" }).leaves(1),
            Column::right(&told).leaves(2),
        ];
        let rows: Vec<Vec<String>> = rows.collect();
        self.table(&columns, rows)
    }

    /// A bar for each number of threads.
    fn bars(&self, series: &Series) -> Option<String> {
        let known = || series.points.iter().filter_map(|p| Some((p, p.stack?)));
        let longest = known().map(|(p, _)| p.available_s).fold(0.0, f64::max);
        let numbers = known().map(|(p, _)| p.threads.to_string().len()).max()?;
        let room = self.width.checked_sub(numbers + 12)?;
        if longest <= 0.0 || room < 10 {
            return None;
        }
        let about = match series.scaling {
            Scaling::Strong => "own time times threads; perfect scaling: all as long as the first",
            Scaling::Weak => "own time times threads; perfect scaling: as long as the | shows",
        };
        let mut text = self.paint.titled("Thread time", about, self.width);
        let per_character = longest / room as f64;
        let mut used = [false; PARTS.len()];
        for (point, stack) in known() {
            let mut bar = String::new();
            let mut length = 0;
            for (at, n) in lengths(&stack, per_character) {
                let (_, character, code) = PARTS[at];
                used[at] = true;
                length += n;
                bar += &self
                    .paint
                    .with(code, &std::iter::repeat_n(character, n).collect::<String>());
            }
            let ideal = (point.ideal_s / per_character).round() as usize;
            if series.scaling == Scaling::Weak && ideal > length && ideal < room {
                bar += &(" ".repeat(ideal - length) + "|");
            }
            text += &format!(
                "{:>numbers$}  {:>8}  {bar}\n",
                point.threads,
                seconds(point.available_s)
            );
        }
        let legend = PARTS.iter().zip(used).filter(|(_, used)| *used);
        let legend = legend
            .map(|((cause, character, _), _)| format!("{character} {}", series_cause(*cause)));
        let mut line = String::new();
        for part in legend {
            let length = line.chars().count() + 2 + part.chars().count();
            if !line.is_empty() && length > self.width {
                text += &(self.paint.with("2", &std::mem::take(&mut line)) + "\n");
            }
            line += if line.is_empty() { "" } else { "  " };
            line += &part;
        }
        text += &(self.paint.with("2", &line) + "\n");
        Some(text)
    }

    /// What the largest number of threads loses.
    fn losses(&self, series: &Series) -> Option<String> {
        const MOST: usize = 6;
        let last = series.points.last()?;
        let lost_s = last.available_s - last.ideal_s;
        let losses: Vec<_> = last.losses.iter().filter(|l| l.seconds > 0.0).collect();
        if lost_s <= 0.0 || losses.is_empty() {
            return None;
        }
        let title = format!("Lost with {} threads", last.threads);
        let about = format!(
            "thread time beyond perfect scaling: {} of {}",
            seconds(lost_s),
            seconds(last.available_s)
        );
        let row = |l: &&ompfuse_account::model::series::Loss| {
            let place = l.place.as_ref();
            vec![
                seconds(l.seconds),
                l.share.map(percent).unwrap_or_default(),
                series_cause(l.cause).to_owned(),
                place.map_or_else(String::new, |p| {
                    p.construct.map_or("region", Construct::name).to_owned()
                }),
                l.inflation
                    .map(|i| format!("{:.2}", i.times))
                    .unwrap_or_default(),
                place.map_or_else(|| "outside parallel regions".to_owned(), series_location),
            ]
        };
        let rows: Vec<Vec<String>> = losses.iter().take(MOST).map(row).collect();
        let columns = [
            Column::right("lost"),
            Column::right("share"),
            Column::left("to"),
            Column::left("construct").leaves(1),
            Column::right("times as long").leaves(2),
            Column::left("location").keeps_place(14),
        ];
        Some(self.paint.titled(&title, &about, self.width) + &self.table(&columns, rows))
    }

    fn regions(&self, series: &Series) -> Option<String> {
        if series.regions.is_empty() {
            return None;
        }
        let numbers: Vec<u32> = series.points.iter().map(|p| p.threads).collect();
        let (first, last) = (numbers.first()?, numbers.last()?);
        let row = |(n, region): (usize, &SeriesRegion)| {
            let at = |threads: u32| region.points.iter().find(|p| p.threads == threads);
            let wall = |threads| at(threads).map_or_else(|| "-".to_owned(), |p| seconds(p.wall_s));
            let mut row = vec![
                (n + 1).to_string(),
                series_location(&region.place),
                wall(*first),
                wall(*last),
            ];
            row.extend(numbers.iter().skip(1).map(|&threads| {
                let efficiency = at(threads).and_then(|p| p.efficiency);
                efficiency.map_or_else(|| "-".to_owned(), |e| format!("{:.0}%", 100.0 * e))
            }));
            row.push(region.lost_s.map(seconds).unwrap_or_default());
            row.push(region.mostly.map_or("", series_cause).to_owned());
            row
        };
        let shown = series.regions.iter().take(self.top);
        let rows: Vec<Vec<String>> = shown.enumerate().map(row).collect();
        let names: Vec<String> = numbers.iter().map(|n| format!("×{n}")).collect();
        let (wall_first, wall_last) = (format!("wall ×{first}"), format!("wall ×{last}"));
        let mut columns = vec![
            Column::right("#"),
            Column::left("parallel region").keeps_place(14),
            Column::right(&wall_first).leaves(2),
            Column::right(&wall_last).leaves(3),
        ];
        // Those in the middle tell least.
        let middle = names.len() / 2;
        for (at, name) in names.iter().enumerate().skip(1) {
            let column = Column::right(name);
            let is_last = at + 1 == names.len();
            let rank = 4 + names.len().saturating_sub(at.abs_diff(middle)) as u8;
            columns.push(if is_last { column } else { column.leaves(rank) });
        }
        columns.push(Column::right("lost"));
        columns.push(Column::left("mostly to").leaves(1));
        let about = format!("×n: efficiency with n threads; lost: thread time, with {last}");
        let mut text =
            self.paint.titled("Parallel regions", &about, self.width) + &self.table(&columns, rows);
        let more = series.regions.len().saturating_sub(self.top);
        if more > 0 {
            text += &format!("{more} more; --top lists them\n");
        }
        Some(text)
    }

    fn notes(&self, series: &Series) -> Option<String> {
        if series.notes.is_empty() {
            return None;
        }
        let lines = words::series_notes(&series.notes).into_iter();
        let lines = lines.map(|line| wrap(&format!("- {line}"), self.width, "  "));
        Some(self.paint.with("33", "Mind") + "\n" + &lines.collect::<String>())
    }
}
