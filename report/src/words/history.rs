//! What is said of a program over its commits.

use super::compare::{self, signed};
use super::estimates::{NOTHING, visible};
use chrono::DateTime;
use ompfuse_account::units::percent;
use ompfuse_compare::Machine;
use ompfuse_compare::history::{Basis, ChangePoint, Curve, FEWEST, History, Point, Series};
use ompfuse_compare::side::Unit;

/// Characters of a commit's hash that are shown.
const SHORT: usize = 7;

/// Series that the verdict speaks of.
const SERIES: usize = 4;

/// A commit as people name it: the beginning of its hash, with a plus if there were other changes, or its baseline's file.
pub(crate) fn commit(point: &Point) -> String {
    match &point.commit {
        Some(hash) => {
            let short: String = hash.chars().take(SHORT).collect();
            if point.is_changed { short + "+" } else { short }
        }
        None => point.name.clone(),
    }
}

/// The day of a commit: `12 Nov 2026`.
pub(crate) fn day(point: &Point) -> Option<String> {
    let date = DateTime::parse_from_rfc3339(point.date.as_deref()?).ok()?;
    Some(date.format("%-d %b %Y").to_string())
}

/// `1a2b3c4 (12 Nov 2026)`.
pub(crate) fn commit_of_day(point: &Point) -> String {
    match day(point) {
        Some(day) => format!("{} ({day})", commit(point)),
        None => commit(point),
    }
}

/// The size of a change: `+5.2%`.
pub(crate) fn change_size(curve: &Curve, change: &ChangePoint) -> String {
    match change.change {
        Some(size) => signed(size, unit(curve)),
        None => format!("0 -> {}", compare::value(&curve.quantity, change.after)),
    }
}

/// Where the size is: `+4.1% to +6.3%`.
pub(crate) fn change_interval(curve: &Curve, change: &ChangePoint) -> String {
    match change.interval {
        Some(i) => format!(
            "{} to {}",
            signed(i.low, unit(curve)),
            signed(i.high, unit(curve))
        ),
        None => "exact".to_owned(),
    }
}

fn unit(curve: &Curve) -> Unit {
    match curve.quantity.is_efficiency() {
        true => Unit::Share,
        false => Unit::Seconds,
    }
}

/// What a curve is of: `wall time`, `parallel solve.c:61: wall time`.
pub(crate) fn curve_name(curve: &Curve) -> String {
    let quantity = compare::quantity(&curve.quantity);
    match &curve.region {
        Some(_) => format!("{}: {quantity}", curve_place(curve)),
        None => quantity,
    }
}

/// The region of a curve.
pub(crate) fn curve_place(curve: &Curve) -> String {
    match &curve.region {
        Some(key) => format!("{} {}", key.construct.name(), compare::place(key)),
        None => "program".to_owned(),
    }
}

/// Where a change may have begun, if that is not certain: `1a2b3c4 to 5d6e7f8`.
pub(crate) fn change_range(series: &Series, change: &ChangePoint) -> Option<String> {
    let at = |n: u32| series.commits.get(n as usize).map(commit);
    match change.earliest == change.latest {
        true => None,
        false => Some(format!(
            "{} to {}",
            at(change.earliest)?,
            at(change.latest)?
        )),
    }
}

/// A commit or several.
fn commits(n: usize) -> String {
    match n {
        1 => "1 commit".to_owned(),
        n => format!("{n} commits"),
    }
}

/// A change with its commit: `+5.2% since 1a2b3c4 (12 Nov 2026)`.
fn since(series: &Series, curve: &Curve, change: &ChangePoint) -> String {
    let at = series.commits.get(change.at as usize);
    let since = at.map_or(String::new(), |at| format!(" since {}", commit_of_day(at)));
    format!("{}{since}", change_size(curve, change))
}

/// What a curve's last change is, or what is known without one: the part behind its name.
pub(crate) fn curve_verdict(series: &Series, curve: &Curve) -> String {
    let known = curve.values.iter().flatten().count();
    if let Some(last) = curve.changes.last() {
        let earlier = match curve.changes.len() - 1 {
            0 => String::new(),
            1 => ", and one earlier change".to_owned(),
            n => format!(", and {n} earlier changes"),
        };
        return format!(
            "{}{earlier}, {}",
            since(series, curve, last),
            commits(known)
        );
    }
    if let Some(last) = curve.undecided.last() {
        return format!(
            "undecided: {}, and the machine itself computed {} from then on",
            since(series, curve, last),
            match last.after > last.before {
                true => "slower",
                false => "faster",
            }
        );
    }
    match curve.basis {
        Basis::TooFew => format!(
            "not known: {} with a value, {FEWEST} are needed",
            commits(known)
        ),
        Basis::Exact => format!(
            "no change in {}; any difference would be seen",
            commits(known)
        ),
        Basis::Tested(noise) => {
            let seen = match (noise.smallest, visible(noise.smallest, Unit::Count)) {
                (None, _) => "; the noise of neighbouring commits is so alike that no step is certain to be seen".to_owned(),
                (_, None) => "; no step can be seen with this noise".to_owned(),
                (_, Some(size)) if size == NOTHING => "; any step would be seen".to_owned(),
                (_, Some(size)) => format!("; a step of {size} in the last five would be seen"),
            };
            format!("no change in {}{seen}", commits(known))
        }
    }
}

/// The program in a few lines: one for each of the first series.
pub fn history_verdict(history: &History) -> Vec<String> {
    let many = history.machines.len() > 1;
    let line = |series: &Series| {
        let curve = series.headline()?;
        let machine = series.machine.as_ref().filter(|_| many);
        let of = machine.map_or_else(String::new, |m| format!(" on {}", processor(m)));
        let others = series.curves.iter().filter(|c| *c != curve);
        let inside = match (
            curve.changes.is_empty(),
            others.filter(|c| !c.changes.is_empty()).count(),
        ) {
            (true, 1) => ". Another value changed".to_owned(),
            (true, n) if n > 1 => format!(". {n} other values changed"),
            _ => String::new(),
        };
        let verdict = curve_verdict(series, curve);
        Some(format!("{}: {verdict}{of}{inside}", curve_name(curve)))
    };
    let telling = history.series.iter().filter(|s| tells(s));
    let lines: Vec<String> = telling.filter_map(line).take(SERIES).collect();
    match lines.is_empty() {
        false => lines,
        true => history.series.iter().filter_map(line).take(1).collect(),
    }
}

/// Whether a series says something of the program's performance: numbers of units that stay the same don't.
fn tells(series: &Series) -> bool {
    let is_telling = |c: &Curve| c.quantity.is_time() || c.quantity.is_instructions();
    let headline = series.headline();
    headline.is_some_and(is_telling) || series.curves.iter().any(|c| !c.changes.is_empty())
}

/// The processor of a machine.
pub(crate) fn processor(machine: &Machine) -> &str {
    machine
        .processor
        .as_deref()
        .unwrap_or("an unknown processor")
}

/// A machine: `AMD EPYC 7763, 4 processors, Linux 6.8.0`.
pub(crate) fn machine(machine: &Machine) -> String {
    let model = machine.processor.as_deref().unwrap_or("unknown processor");
    let kernel = match machine.kernel.as_str() {
        "" => "unknown kernel".to_owned(),
        kernel => format!("Linux {kernel}"),
    };
    match machine.processors {
        0 => format!("{model}, {kernel}"),
        1 => format!("{model}, 1 processor, {kernel}"),
        n => format!("{model}, {n} processors, {kernel}"),
    }
}

fn threads(series: &Series) -> String {
    match series.threads {
        1 => "1 thread".to_owned(),
        n => format!("{n} threads"),
    }
}

/// What a series is of: program, threads, machine, commits.
pub(crate) fn series_of(series: &Series) -> String {
    let place = series
        .machine
        .as_ref()
        .map_or_else(|| "counts, equal on every machine".to_owned(), machine);
    let (first, last) = (series.commits.first(), series.commits.last());
    let range = match (first, last) {
        (Some(first), Some(last)) if first != last => {
            format!(", {} to {}", commit(first), commit_of_day(last))
        }
        _ => String::new(),
    };
    let program = &series.program;
    format!(
        "{program}, {}, {place}: {}{range}",
        threads(series),
        commits(series.commits.len())
    )
}

/// The noise of a tested curve.
pub(crate) fn curve_noise(curve: &Curve) -> Option<String> {
    let Basis::Tested(noise) = curve.basis else {
        return None;
    };
    Some(format!(
        "noise {}, correlation of neighbours {:.1}",
        percent(noise.deviation),
        noise.correlation
    ))
}

/// What to mind.
pub fn history_notes(history: &History) -> Vec<String> {
    let mut notes = vec![];
    let inputs = |of: fn(&Series) -> String| {
        let mut all: Vec<String> = history.series.iter().map(of).collect();
        all.sort();
        all.dedup();
        all.len()
    };
    if history.machines.len() > 1 {
        notes.push(format!(
            "{} machines: times of different machines can't be compared, so each is a series of its own. Hosted runners differ from job to \
             job; counts of a simulator (record --simulate) don't",
            history.machines.len()
        ));
    }
    if history.machines.iter().any(|m| m.processor.is_none()) {
        notes.push(
            "some runs don't say on which processor they were made, and their machines may differ"
                .to_owned(),
        );
    }
    if inputs(|s| format!("{} {}", s.program, s.arguments)) > 1 {
        notes.push(
            "the program was given different arguments: each is a series of its own".to_owned(),
        );
    }
    if inputs(|s| s.threads.to_string()) > 1 {
        notes.push("numbers of threads differ: each is a series of its own".to_owned());
    }
    for series in &history.series {
        let Some(curve) = series.headline() else {
            continue;
        };
        let unsteady = series.commits.iter().filter(|p| p.is_unsteady).count();
        if unsteady > 0 {
            notes.push(format!(
                "the times of {} are left out: the machine's speed changed while they were measured",
                commits(unsteady)
            ));
        }
        let last = curve.values.len() as u32;
        let at_end = (0..last)
            .rev()
            .take_while(|at| curve.lone.contains(at))
            .count();
        let others = curve.lone.len() - at_end;
        if at_end > 0 {
            notes.push(format!(
                "{}: the newest {} far from the others: a step, or a busy machine; 4 commits tell",
                curve_name(curve),
                values(at_end, "value is")
            ));
        }
        if others > 0 {
            notes.push(format!(
                "{}: {} far from the commits around; that is no change of the program",
                curve_name(curve),
                values(others, "one value is")
            ));
        }
    }
    notes
}

fn values(n: usize, one: &str) -> String {
    match n {
        1 => one.to_owned(),
        n => format!("{n} values are"),
    }
}

/// The change to tell of where the program's time has none: one for the worse, and the newest of them.
fn most_telling(history: &History) -> Option<(&Series, &Curve, &ChangePoint)> {
    let curves = history
        .series
        .iter()
        .flat_map(|s| s.curves.iter().map(move |c| (s, c)));
    let all = curves.flat_map(|(s, c)| c.changes.iter().map(move |change| (s, c, change)));
    let told = all.filter(|(.., change)| change.is_worse.is_some());
    told.max_by_key(|(s, _, change)| {
        (
            change.is_worse,
            std::cmp::Reverse(s.commits.len() as u32 - change.at),
        )
    })
}

/// The text of a badge, and whether it is good news (`None`: not known).
pub(crate) fn badge(history: &History) -> (String, Option<bool>) {
    let mut all = history.series.iter();
    let telling = all.clone().find(|s| tells(s));
    let found = telling
        .or_else(|| all.next())
        .and_then(|s| Some((s, s.headline()?)));
    let Some((series, curve)) = found else {
        return ("not known".to_owned(), None);
    };
    match curve.changes.last() {
        Some(last) => {
            let at = series
                .commits
                .get(last.at as usize)
                .map_or(String::new(), commit);
            let size = change_size(curve, last);
            (
                format!("{size} since {at}"),
                Some(last.is_worse != Some(true)),
            )
        }
        None if !curve.undecided.is_empty() => ("undecided: the machine changed".to_owned(), None),
        None if curve.basis == Basis::TooFew => ("too few commits".to_owned(), None),
        None => {
            if let Some((series, curve, change)) = most_telling(history) {
                let (size, at) = (change_size(curve, change), change.at as usize);
                let since = series.commits.get(at).map_or(String::new(), commit);
                let text = format!("{}: {size} since {since}", curve_name(curve));
                return (text, Some(change.is_worse != Some(true)));
            }
            let known = curve.values.iter().flatten().count();
            (format!("no change in {}", commits(known)), Some(true))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{history_notes, history_verdict};
    use ompfuse_compare::history::History;
    use ompfuse_compare::testing::{changes, slower};

    #[test]
    fn a_change_that_the_machine_has_made_too_is_undecided() {
        let verdict = |found: &History| history_verdict(found).join(" ");
        for steady in [None, Some([1e-3, 1.01e-3])] {
            let found = slower(|_| steady);
            assert_eq!(changes(&found), [20], "{steady:?}");
            assert!(found.got_worse_within(10));
        }
        // The machine got as much slower, half as much, a little, or faster.
        for (factor, is_undecided) in [(1.25, true), (1.15, true), (1.03, false), (0.8, false)] {
            let found = slower(|n| Some([if n < 20 { 1e-3 } else { 1e-3 * factor }; 2]));
            let text = verdict(&found);
            assert_eq!(changes(&found).is_empty(), is_undecided, "{factor}");
            assert_eq!(found.got_worse_within(10), !is_undecided, "{factor}");
            assert_eq!(
                text.contains("undecided: +2") && text.contains("computed slower from then on"),
                is_undecided,
                "{text}"
            );
        }
    }

    #[test]
    fn times_are_left_out_if_the_machine_changed_while_they_were_measured() {
        let found = slower(|n| Some([1e-3, if n % 10 == 3 { 1.3e-3 } else { 1e-3 }]));
        let curve = &found.series[0].curves[0];
        let without: Vec<usize> = (0..30).filter(|&n| curve.values[n].is_none()).collect();
        assert_eq!(without, [3, 13, 23]);
        assert_eq!(changes(&found), [20]);
        let notes = history_notes(&found).join(" ");
        assert!(
            notes.contains("the times of 3 commits are left out"),
            "{notes}"
        );
        // Nothing is known of all of a commit's baselines.
        assert_eq!(changes(&slower(|n| (n != 3).then_some([1e-3; 2]))), [20]);
    }
}
