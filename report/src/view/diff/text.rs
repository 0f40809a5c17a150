//! A comparison for a terminal: what failed, the verdict, conditions, what changed most, what has no partner.

use super::{LONE, Options, listed};
use crate::view::paint::{self, Paint};
use crate::view::table::{self, Column, wrap};
use crate::words;
use ompfuse_account::units::{percent, seconds, several};
use ompfuse_compare::gate::{Outcome, Verdict};
use ompfuse_compare::{Diff, Finding, Pair, Quantity};

/// The comparison as text, lines ending in a line feed.
pub fn text(diff: &Diff, outcomes: &[Outcome], options: &Options) -> String {
    let view = View {
        width: paint::width(options.width),
        paint: Paint { on: options.colour },
    };
    let mut sections = vec![];
    sections.extend(view.outcomes(outcomes, false));
    sections.push(view.verdict(diff));
    sections.extend(view.conditions(diff));
    sections.extend(view.program(diff));
    let (pairs, more) = listed(diff, options);
    sections.extend(view.regions(&pairs, more));
    sections.extend(view.details(&pairs));
    sections.extend(view.lone(diff));
    sections.extend(view.outcomes(outcomes, true));
    sections.join("\n")
}

/// Whether one unit's change is worth telling: of all units some are slower by chance.
fn is_much(unit: &ompfuse_compare::diff::UnitChange, pair: &Pair) -> bool {
    let more = unit.time_s[1] - unit.time_s[0];
    let all = pair.time_change().map_or(0.0, f64::abs);
    // What is certain is among the causes.
    !unit.is_certain && pair.is_changed() && more >= 0.1 * unit.time_s[0] && more >= 0.05 * all
}

struct View {
    width: usize,
    paint: Paint,
}

impl View {
    fn wrapped(&self, text: &str) -> String {
        wrap(text, self.width, "  ")
    }

    /// Expressions that passed, or all others.
    fn outcomes(&self, outcomes: &[Outcome], passed: bool) -> Option<String> {
        let mut text = String::new();
        let is_wanted = |o: &&Outcome| (o.verdict == Verdict::Passes) == passed;
        let mut wanted: Vec<&Outcome> = outcomes.iter().filter(is_wanted).collect();
        // What fails comes first, what isn't known last.
        wanted.sort_by_key(|outcome| (!outcome.holds(), outcome.is_undecided()));
        for outcome in wanted {
            let word = words::outcome_word(outcome);
            let (mark, code) = match outcome.verdict {
                Verdict::Error { .. } | Verdict::Undecided { .. } => (word, "33"),
                Verdict::Holds { .. } => ("FAILED", "31"),
                Verdict::Passes => (word, "32"),
            };
            let said = words::outcome(outcome);
            let line = self.wrapped(&format!("{mark} {}: {said}", outcome.expression.as_str()));
            text += &line.replacen(mark, &self.paint.with(code, mark), 1);
        }
        (!text.is_empty()).then_some(text)
    }

    fn verdict(&self, diff: &Diff) -> String {
        let side = |name: &str, info: &ompfuse_compare::SideInfo| {
            let line = format!(
                "{name}  {} · {} · {}",
                info.name,
                several(info.runs as u64, "run"),
                several(info.threads as u64, "thread")
            );
            self.paint
                .with("2", table::front(&line, self.width).trim_end())
                + "\n"
        };
        let verdict = wrap(&words::verdict(diff), self.width, "");
        let bold = verdict
            .lines()
            .map(|line| self.paint.with("1", line) + "\n");
        bold.collect::<String>() + &side("A", &diff.a) + &side("B", &diff.b)
    }

    fn conditions(&self, diff: &Diff) -> Option<String> {
        if diff.conditions.is_empty() {
            return None;
        }
        let lines = diff.conditions.iter().map(words::condition);
        let lines = lines.map(|line| self.wrapped(&format!("- {line}")));
        Some(self.paint.with("33", "Mind") + "\n" + &lines.collect::<String>())
    }

    /// The whole program's quantities that changed, beside the one of the verdict.
    fn program(&self, diff: &Diff) -> Option<String> {
        let told = |c: &&ompfuse_compare::Change| {
            words::is_told(c) && c.quantity != Quantity::Wall && c.a.is_some() && c.b.is_some()
        };
        let rows = diff.total.iter().filter(told).map(|c| {
            let side =
                |v: Option<f64>| v.map_or_else(String::new, |v| words::value(&c.quantity, v));
            let doubt = if c.finding == Finding::NoiseUnknown {
                "?"
            } else {
                ""
            };
            vec![
                words::quantity(&c.quantity),
                side(c.a),
                side(c.b),
                format!("{}{doubt}", words::changed(c)),
                match c.finding {
                    Finding::NoiseUnknown => String::new(),
                    _ => words::certainty(c),
                },
            ]
        });
        let rows: Vec<Vec<String>> = rows.collect();
        let columns = [
            Column::left("program").keeps_front(14),
            Column::right("A").leaves(2),
            Column::right("B"),
            Column::right("change"),
            Column::left("").leaves(1),
        ];
        (!rows.is_empty()).then(|| self.table(&columns, rows))
    }

    fn table(&self, columns: &[Column<'_>], rows: Vec<Vec<String>>) -> String {
        let plain = |_: usize, cell: &str| cell.to_owned();
        let head = |line: &str| self.paint.with("2", line);
        let fitted = table::fitted(columns, rows, Some(self.width), &plain, &head);
        let missing = fitted.missing("wider lines, or --format json");
        let missing = missing.map_or(String::new(), |line| self.wrapped(&line));
        fitted.text + &missing
    }

    fn regions(&self, pairs: &[&Pair], more: usize) -> Option<String> {
        if pairs.is_empty() {
            return None;
        }
        let row = |(n, pair): (usize, &&Pair)| {
            let headline = pair.headline();
            let side = |v: Option<f64>| match (headline, v) {
                (Some(c), Some(v)) => words::value(&c.quantity, v),
                _ => String::new(),
            };
            let doubt = match headline.map(|c| c.finding) {
                Some(Finding::Changed | Finding::Equal) => "",
                _ => "?",
            };
            vec![
                (n + 1).to_string(),
                headline.map_or_else(String::new, |c| words::changed(c) + doubt),
                side(headline.and_then(|c| c.a)),
                side(headline.and_then(|c| c.b)),
                percent(pair.share[1]),
                words::compare_kind(pair).to_owned(),
                words::pair_place(pair),
                words::causes(pair).into_iter().next().unwrap_or_default(),
            ]
        };
        let rows: Vec<Vec<String>> = pairs.iter().enumerate().map(row).collect();
        let columns = [
            Column::right("#"),
            Column::right("change"),
            Column::right("A"),
            Column::right("B"),
            Column::right("of B").leaves(2),
            Column::left("region").leaves(1),
            Column::left("location").keeps_place(14),
            Column::left("why").leaves(1).keeps_front(24),
        ];
        let certain = pairs.iter().any(|p| p.is_changed());
        let title = match certain {
            true => "What changed",
            false => "Largest differences",
        };
        let headlines = || pairs.iter().filter_map(|p| Some(&p.headline()?.quantity));
        let has = |wanted: Quantity| headlines().any(|q| *q == wanted);
        let times = "wall time of parallel regions, thread time of others";
        let parts = [
            (has(Quantity::Wall) || has(Quantity::Time), times),
            (headlines().any(Quantity::is_instructions), "instructions"),
            (has(Quantity::MedianUnit), "/unit: the median unit"),
            (has(Quantity::Executions), "executions of waits"),
        ];
        let parts = parts.iter().filter(|(is_there, _)| *is_there);
        let parts: Vec<&str> = parts.map(|(_, part)| *part).collect();
        let about = format!("{}; ? is not certain", parts.join(", "));
        let both = title.len() + 2 + about.len() <= self.width;
        let between = if both { "  " } else { "\n" };
        let about = wrap(&about, self.width, "");
        let mut text = format!(
            "{}{between}{}\n",
            self.paint.with("1", title),
            self.paint.with("2", about.trim_end())
        );
        text += &self.table(&columns, rows);
        if more > 0 {
            text += &self.wrapped(&format!("{more} more; --top lists them"));
        }
        Some(text)
    }

    /// All that is to be said of each listed region.
    fn details(&self, pairs: &[&Pair]) -> Option<String> {
        let mut text = String::new();
        for (n, pair) in pairs.iter().enumerate() {
            let mut said = words::causes(pair);
            if let Some(change) = pair.headline() {
                let certainty = words::certainty(change);
                if !certainty.is_empty() && change.finding == Finding::Changed {
                    said.insert(0, certainty);
                }
            }
            if let Some(unit) = pair.unit.as_ref().filter(|u| is_much(u, pair)) {
                said.push(format!(
                    "slowest unit against A: {}, {} -> {}",
                    unit.what,
                    seconds(unit.time_s[0]),
                    seconds(unit.time_s[1])
                ));
            }
            said.push(words::basis(pair));
            text += &self.wrapped(&format!("#{} {}", n + 1, said.join("; ")));
        }
        (!text.is_empty()).then_some(text)
    }

    fn lone(&self, diff: &Diff) -> Option<String> {
        let mut text = String::new();
        for (side, lone) in [("A", &diff.only_a), ("B", &diff.only_b)] {
            if lone.is_empty() {
                continue;
            }
            let title = words::only_in(side, lone);
            text += &(self.paint.with("1", &title) + "\n");
            for one in lone.iter().take(LONE) {
                let key = &one.key;
                // The time of a wait is its parallel region's.
                let share = match key.construct.is_wait() {
                    true => String::new(),
                    false => format!("{} ", percent(one.share)),
                };
                text += &self.wrapped(&format!(
                    "{share}{} {} ({})",
                    key.construct.name(),
                    words::in_sentence(&words::compare_place(key)),
                    words::lone(one),
                ));
            }
            if lone.len() > LONE {
                text += &self.wrapped(&format!("{} more", lone.len() - LONE));
            }
        }
        (!text.is_empty()).then_some(text)
    }
}
