//! A run over time as text for a terminal: a line for each kind of time and each construct with much of it, and the phases.

use crate::view::paint::{self, Paint};
use crate::view::table::{self, Column, wrap};
use crate::view::text::TextOptions;
use crate::words::{self, series_location};
use ompfuse_account::model::Class;
use ompfuse_account::model::growth::{GrowthInterval, GrowthReport, Phase};
use ompfuse_account::units::{percent, seconds, several};
use ompfuse_format::Construct;

/// Constructs that have a line.
const REGIONS: usize = 8;
/// Phases that are listed.
const PHASES: usize = 20;
/// A construct with less of the thread time in every interval has no line.
const LEAST: f64 = 0.02;
/// A class of overhead with less of a phase's thread time isn't named.
const NAMED: f64 = 0.05;

const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The run over time as text, lines ending in a line feed.
pub fn text(report: &GrowthReport, options: TextOptions) -> String {
    let view = View {
        width: paint::width(options.width),
        paint: Paint { on: options.colour },
    };
    let mut sections = vec![view.head(report)];
    sections.extend(view.lines(report));
    sections.extend(view.phases(report));
    sections.join("\n")
}

struct View {
    width: usize,
    paint: Paint,
}

impl View {
    fn head(&self, report: &GrowthReport) -> String {
        let mut command = report.program.clone();
        for arg in &report.args {
            command.push(' ');
            command.push_str(arg);
        }
        let end_s = report.intervals.last().map_or(0.0, |i| i.end_s);
        let facts = format!(
            "  {} · {} · {}",
            several(report.threads.into(), "thread"),
            seconds(end_s),
            words::growth_intervals(report)
        );
        let verdict = wrap(&words::growth_verdict(report), self.width, "");
        let verdict = verdict
            .lines()
            .map(|line| self.paint.with("1", line) + "\n");
        let verdict: String = verdict.collect();
        let command = table::front(&command, self.width);
        let facts = wrap(&facts, self.width - 2, "");
        let facts: String = facts.lines().map(|l| format!("  {l}\n")).collect();
        format!("{command}\n{facts}{verdict}")
    }

    /// A line for each kind of time, then one for each construct.
    fn lines(&self, report: &GrowthReport) -> Option<String> {
        let all: Vec<f64> = report.intervals.iter().map(|i| i.thread_time_s).collect();
        if all.iter().all(|&s| s <= 0.0) {
            return None;
        }
        let of = |get: fn(&GrowthInterval) -> f64| report.intervals.iter().map(get).collect();
        let mut kinds: Vec<(String, Vec<f64>)> = vec![
            ("work".to_owned(), of(|i| i.work_s)),
            ("serial code".to_owned(), of(|i| i.serial_s)),
            ("idle workers".to_owned(), of(|i| i.idle_s)),
        ];
        for class in Class::ALL {
            let values = report.intervals.iter();
            let values = values.map(|i| i.overhead.get(class).unwrap_or(0.0));
            kinds.push((class.name().to_owned(), values.collect()));
        }
        let regions = report.regions.iter().map(|r| {
            let construct = r.place.construct.map_or("region", Construct::name);
            let name = format!("{construct} {}", series_location(&r.place));
            (name, r.interval_s.clone())
        });
        let is_seen = |(_, values): &(String, Vec<f64>)| {
            values.iter().zip(&all).any(|(v, all)| *v > LEAST * all)
        };
        let kinds: Vec<_> = kinds.into_iter().filter(is_seen).collect();
        let regions: Vec<_> = regions.filter(is_seen).take(REGIONS).collect();
        let names = kinds
            .iter()
            .chain(&regions)
            .map(|(name, _)| name.chars().count());
        let room = names.max()?.min(self.width / 3);
        let width = self.width - room - 2;
        let each = all.len().div_ceil(width).max(1);
        let about = match each {
            1 => "a character is an interval; its height is the share of all threads' time"
                .to_owned(),
            n => format!(
                "a character is {n} intervals; its height is the share of all threads' time"
            ),
        };
        let mut text = self.paint.titled("Over time", &about, self.width);
        let mut put = |(name, values): &(String, Vec<f64>)| {
            let name = table::place(name, room);
            let line = self.paint.with("36", &sparkline(values, &all, each));
            text += &format!("{name:<room$}  {}\n", line.trim_end());
        };
        kinds.iter().for_each(&mut put);
        regions.iter().for_each(&mut put);
        Some(text)
    }

    fn phases(&self, report: &GrowthReport) -> Option<String> {
        if report.phases.len() < 2 {
            return None;
        }
        let row = |(n, p): (usize, &Phase)| {
            let all = p.sums.thread_time_s;
            let share = |s: f64| if all > 0.0 { s / all } else { 0.0 };
            let class = |&class: &Class| (class, share(p.sums.overhead.get(class).unwrap_or(0.0)));
            let classes = Class::ALL.iter().map(class);
            let largest = classes.max_by(|a, b| a.1.total_cmp(&b.1));
            let lost = largest.filter(|(_, share)| *share >= NAMED);
            vec![
                (n + 1).to_string(),
                seconds(p.begin_s),
                seconds(p.end_s),
                (p.main.as_ref())
                    .map_or("serial code", |m| {
                        m.construct.map_or("region", Construct::name)
                    })
                    .to_owned(),
                p.main.as_ref().map_or_else(String::new, series_location),
                percent(p.main_share),
                percent(share(p.sums.work_s)),
                lost.map_or(String::new(), |(class, share)| {
                    format!("{} {}", percent(share), class.name())
                }),
            ]
        };
        let rows = report.phases.iter().enumerate().take(PHASES).map(row);
        let columns = [
            Column::right("#"),
            Column::right("from"),
            Column::right("to"),
            Column::left("mainly").leaves(2),
            Column::left("location").keeps_place(14),
            Column::right("of code"),
            Column::right("code").leaves(3),
            Column::left("most lost to").leaves(1),
        ];
        let about = format!(
            "a new one begins where more than {:.0}% of the time in code moves elsewhere",
            100.0 * report.phase_distance
        );
        let plain = |_: usize, cell: &str| cell.to_owned();
        let head = |line: &str| self.paint.with("2", line);
        let fitted = table::fitted(&columns, rows.collect(), Some(self.width), &plain, &head);
        let missing = fitted.missing("wider lines, or --format json");
        let missing = missing.map_or(String::new(), |line| wrap(&line, self.width, "  "));
        let more = report.phases.len().saturating_sub(PHASES);
        let more = match more {
            0 => String::new(),
            n => format!("{n} more; --format json has all\n"),
        };
        Some(self.paint.titled("Phases", &about, self.width) + &fitted.text + &missing + &more)
    }
}

/// Shares of all time as small columns: so many neighbours in each.
fn sparkline(values: &[f64], all: &[f64], each: usize) -> String {
    let column = |(values, all): (&[f64], &[f64])| {
        let (value, all): (f64, f64) = (values.iter().sum(), all.iter().sum());
        let share = if all > 0.0 { value / all } else { 0.0 };
        match (share * 8.0).round() as usize {
            0 if share > 0.01 => '▁',
            0 => ' ',
            level => LEVELS[level.min(8) - 1],
        }
    };
    values
        .chunks(each)
        .zip(all.chunks(each))
        .map(column)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::sparkline;

    #[test]
    fn a_column_is_a_share() {
        let all = [2.0, 2.0, 2.0, 2.0, 0.0];
        assert_eq!(sparkline(&[2.0, 1.0, 0.05, 0.0, 0.0], &all, 1), "█▄▁  ");
        assert_eq!(sparkline(&[2.0, 0.0, 1.0, 1.0, 0.0], &all, 2), "▄▄ ");
    }
}
