//! What is said of a comparison.

mod causes;
mod conditions;
mod lone;

pub(crate) use causes::causes;
pub(crate) use conditions::condition;
pub(crate) use lone::{lone, only_in};

use super::estimates::{NOTHING, visible};
use super::in_sentence;
use ompfuse_account::model::key::{Caller, RegionKey};
use ompfuse_account::units::{count, factor, percent, seconds};
use ompfuse_compare::cause::{Main, main_change};
use ompfuse_compare::diff::Lone;
use ompfuse_compare::side::Unit;
use ompfuse_compare::{Basis, Change, Condition, Confidence, Diff, Finding, Pair, Quantity};

/// A change in words: `+12.0%`; of shares in percentage points.
pub(crate) fn signed(change: f64, unit: Unit) -> String {
    let sign = if change < 0.0 { "-" } else { "+" };
    let digits = |value: f64| match value.abs() {
        v if v >= 99.95 => format!("{v:.0}"),
        v if v > 0.0 && v < 0.0995 => format!("{v:.2}"),
        v => format!("{v:.1}"),
    };
    match unit {
        Unit::Share if change.abs() >= 9.995 => format!("{sign}{}", factor(change.abs())),
        Unit::Share => format!("{sign}{} points", digits(100.0 * change)),
        // "+45600 %" tells less than "457 times as much".
        _ if change >= 998.5 => "over 1000 times".to_owned(),
        _ if change >= 9.995 => format!("{} times", digits(change + 1.0)),
        _ => format!("{sign}{}%", digits(100.0 * change)),
    }
}

/// A value of a quantity.
pub(crate) fn value(quantity: &Quantity, value: f64) -> String {
    match quantity.unit() {
        Unit::Seconds if *quantity == Quantity::MedianUnit => format!("{}/unit", seconds(value)),
        Unit::Seconds => seconds(value),
        Unit::Share if quantity.is_efficiency() => format!("{value:.2}"),
        Unit::Share => percent(value),
        Unit::Count if value.fract() == 0.0 && value >= 0.0 => count(value as u64),
        Unit::Count => format!("{value:.1}"),
    }
}

/// `1.00 s -> 1.12 s`.
pub(crate) fn both(change: &Change) -> String {
    let side = |v: Option<f64>| v.map_or_else(|| "-".to_owned(), |v| value(&change.quantity, v));
    format!("{} -> {}", side(change.a), side(change.b))
}

/// The change of a quantity, `-` where there is none.
pub(crate) fn changed(change: &Change) -> String {
    let unit = change.quantity.unit();
    change
        .change
        .map_or_else(|| "-".to_owned(), |c| signed(c, unit))
}

/// How sure a change is.
pub(crate) fn certainty(change: &Change) -> String {
    let unit = change.quantity.unit();
    match (change.finding, change.interval) {
        (_, Some(i)) => format!(
            "{:.0}% interval {} to {}",
            100.0 * i.level,
            signed(i.low, unit),
            signed(i.high, unit)
        ),
        (Finding::Changed, None) => "exact".to_owned(),
        (Finding::NoiseUnknown, None) => "one run on a side: noise is unknown".to_owned(),
        _ => String::new(),
    }
}

/// A quantity as sentences name it.
pub(crate) fn quantity(quantity: &Quantity) -> String {
    match quantity {
        Quantity::Wall => "wall time".to_owned(),
        Quantity::Time => "thread time".to_owned(),
        Quantity::Work => "time in the program's code".to_owned(),
        Quantity::ImbalanceTime => "waiting for slower threads".to_owned(),
        Quantity::LimitedParallelism => "limited parallelism".to_owned(),
        Quantity::MaxUnit => "the longest unit".to_owned(),
        Quantity::MeanUnit => "the mean unit".to_owned(),
        Quantity::MedianUnit => "median unit time".to_owned(),
        Quantity::DisturbedUnits => "disturbed units".to_owned(),
        efficiency if efficiency.is_efficiency() => efficiency.to_string().replace('-', " "),
        Quantity::Event(name) => name.strip_prefix("sim-").unwrap_or(name).to_owned(),
        other => other.to_string(),
    }
}

/// A region's kind: `loop`.
pub(crate) fn kind(keys: &[RegionKey]) -> &'static str {
    keys.first().map_or("", |k| k.construct.name())
}

/// A region's place: `solve.c:61`, the library and the innermost callers, the function, or an address.
pub(crate) fn place(key: &RegionKey) -> String {
    if let Some(place) = key.place() {
        return place;
    }
    if let Some(name) = &key.name {
        return name.clone();
    }
    if let Some(called) = called(key) {
        return called;
    }
    let address = key.addresses.first().map(ToString::to_string);
    match (&key.function, address) {
        (Some(function), Some(address)) => format!("{function} ({address})"),
        (Some(function), None) => function.clone(),
        (None, Some(address)) if key.module.is_empty() => address,
        (None, Some(address)) => format!("{address} in {}", key.module),
        (None, None) => "unknown place".to_owned(),
    }
}

/// The library, the innermost function that tells what a region is, and the one that forks: `libdnnl.so.3: brgemm_matmul_t<39>::execute ›
/// parallel`.
fn called(key: &RegionKey) -> Option<String> {
    let named: Vec<(&Caller, &str)> = (key.callers.iter())
        .filter_map(|c| Some((c, c.function.as_deref()?)))
        .collect();
    let (&(innermost, function), outer) = named.split_last()?;
    // A wrapper that all regions share needs its caller, and others have one that helps.
    let mut telling = outer.iter().rev().filter(|(c, _)| !c.is_shared);
    let caller = telling.next().or(outer.last());
    let mut text = match caller {
        Some((c, _)) => format!("{}: ", c.module),
        None => format!("{}: ", innermost.module),
    };
    if let Some((caller, name)) = caller {
        text += &format!("{} › ", super::names::short(name));
        if caller.module != innermost.module {
            text += &format!("{}: ", innermost.module);
        }
    }
    text += &super::names::short(function);
    Some(text)
}

/// Where a pair is: of B, and of A where that is elsewhere.
pub(crate) fn pair_place(pair: &Pair) -> String {
    let first = |keys: &[RegionKey]| keys.first().map_or_else(String::new, place);
    let (a, b) = (first(&pair.a), first(&pair.b));
    let copies = match (pair.is_group, pair.a.len(), pair.b.len()) {
        (true, n, m) if n == m => format!(" and {} like it", n - 1),
        (true, n, m) => format!(" and others ({n} in A, {m} in B)"),
        (false, 1, 1) => String::new(),
        (false, 1, m) => format!(" (one in A, {m} copies in B)"),
        (false, n, 1) => format!(" ({n} copies in A, one in B)"),
        (false, n, m) => format!(" ({n} copies in A, {m} in B)"),
    };
    let is_named = pair.basis == Basis::Callers || pair.b.iter().any(|k| k.line.is_some());
    match a == b || is_named {
        true => format!("{b}{copies}"),
        false => format!("{b} (A: {a}){copies}"),
    }
}

/// By what two regions were matched.
pub(crate) fn basis(pair: &Pair) -> String {
    let by = match pair.basis {
        Basis::Address => "address in the same build",
        Basis::Line => "source line",
        Basis::Order => "order in the function",
        Basis::Function => "its function, in another file",
        Basis::Parts => "the parts of a divided function",
        Basis::Callers => "its callers",
        Basis::Units => "the places of its units",
        Basis::Tree => "its parallel region",
        Basis::Behaviour => "behaviour",
    };
    let sure = match pair.confidence {
        Confidence::Certain => "certain",
        Confidence::High => "high confidence",
        Confidence::Fair => "fair confidence",
    };
    let line = |keys: &[RegionKey]| keys.first().and_then(|k| k.line);
    let file = |keys: &[RegionKey]| -> Option<String> {
        let path = keys.first()?.file.as_deref()?;
        Some(path.rsplit('/').next().unwrap_or(path).to_owned())
    };
    let function = |keys: &[RegionKey]| keys.first().and_then(|k| k.function.clone());
    let was = match (pair.basis, function(&pair.a), function(&pair.b)) {
        (Basis::Parts | Basis::Order, Some(a), Some(b)) if a != b => {
            format!(", {} in A", super::names::short(&a))
        }
        _ => String::new(),
    };
    let moved = match (line(&pair.a), line(&pair.b), file(&pair.a), file(&pair.b)) {
        (Some(line), _, Some(a), Some(b)) if a != b => format!(", {a}:{line} in A"),
        (Some(a), Some(b), ..) if a != b => format!(", line {a} in A"),
        _ => String::new(),
    };
    if pair.basis == Basis::Callers {
        let innermost = |keys: &[RegionKey]| keys.first().and_then(called);
        return match (innermost(&pair.a), innermost(&pair.b)) {
            (Some(a), Some(b)) if a != b => format!("matched by {by} ({sure}; in A: {a})"),
            _ => format!("matched by {by} ({sure})"),
        };
    }
    format!("matched by {by} ({sure}{was}{moved})")
}

/// The instructions' change, whoever has counted them.
pub(crate) fn instructions(changes: &[Change]) -> Option<&Change> {
    changes.iter().find(|c| c.quantity.is_instructions())
}

/// Whether a change is one to tell of: certain, or one of which nothing better can be known.
pub(crate) fn is_told(change: &Change) -> bool {
    matches!(change.finding, Finding::Changed | Finding::NoiseUnknown)
        && change.change.is_none_or(|c| c.abs() >= LEAST)
}

/// Relative changes below this are no cause.
const LEAST: f64 = 0.001;

/// The verdict: one or two sentences.
pub fn verdict(diff: &Diff) -> String {
    let headline = diff.get(&Quantity::Wall).filter(|c| c.change.is_some());
    let counted = headline.or_else(|| instructions(&diff.total));
    let is_hidden = |c: &Condition| matches!(c, Condition::Uncounted { .. });
    let is_hidden = diff.conditions.iter().any(is_hidden);
    let headline = counted.filter(|c| !(is_hidden && c.quantity.is_by_functions()));
    let first = headline.map_or_else(
        || match counted {
            Some(_) => "How many instructions the sides execute is not known: much of the work is in code that isn't counted.".to_owned(),
            None => "Neither side has a time or instructions to compare.".to_owned(),
        },
        |change| of_program(change, diff.turns.filter(|_| change.quantity.is_time())),
    );
    let second = most(diff).or_else(|| lone::alone(diff));
    let second = second.unwrap_or_else(|| "No region is certain to have changed.".to_owned());
    let is_unknown = headline.is_some_and(|c| c.finding == Finding::NoiseUnknown);
    let is_measured = |pair: &Pair| pair.changes.iter().any(|c| c.finding == Finding::Changed);
    if is_unknown && !diff.pairs.iter().any(is_measured) {
        let advice =
            "Record each side several times (record --repeat 5) to tell noise from change.";
        let alone = lone::alone(diff).map_or_else(String::new, |text| text + " ");
        return format!("{first} {alone}{advice}");
    }
    format!("{first} {second}")
}

/// `turns`: pairs of runs that it was compared by.
pub(super) fn of_program(change: &Change, turns: Option<u32>) -> String {
    let by = change.change.unwrap_or(0.0);
    let size = signed(by.abs(), change.quantity.unit());
    let size = size.trim_start_matches('+');
    let is_time = change.quantity == Quantity::Wall;
    let word = match (is_time, by < 0.0) {
        (true, true) => "less",
        (false, true) => "fewer",
        (_, false) => "more",
    };
    let compared = match is_time {
        true => format!("B takes {size} {word} wall time ({}", both(change)),
        false => format!(
            "B executes {size} {word} instructions in its regions ({}",
            both(change)
        ),
    };
    match change.finding {
        Finding::Changed => {
            let certainty = certainty(change);
            let pairs = turns.map_or_else(String::new, |n| format!(", in {n} pairs"));
            format!("{compared}, {certainty}{pairs}).")
        }
        Finding::Equal => format!("{} equal on both sides.", was(&change.quantity)),
        Finding::NotSeen { could_see } => {
            let what = quantity(&change.quantity);
            let pairs = turns.map_or_else(String::new, |n| format!(" in {n} pairs"));
            match visible(could_see, Unit::Count) {
                Some(size) if size == NOTHING => {
                    format!("{} equal on both sides{pairs}.", was(&change.quantity))
                }
                Some(size) => {
                    format!(
                        "No difference of {what} was seen{pairs}; one of {size} would have been."
                    )
                }
                None => format!("A difference of {what} can't be seen with this noise{pairs}."),
            }
        }
        _ => format!("{compared}), but with one run on a side that may be noise."),
    }
}

fn was(quantity: &Quantity) -> &'static str {
    match quantity {
        Quantity::Wall => "Wall time is",
        _ => "Instructions are",
    }
}

/// The region that makes most of the program's change, else the one that changed most; `None` if none did.
pub(crate) fn most(diff: &Diff) -> Option<String> {
    let only = |lone: &Lone, side: &str, sign: &str| {
        let (region, time) = (region(&lone.key), seconds(lone.time_s));
        format!("Most of it is {region}, which only {side} has ({sign}{time} of thread time).")
    };
    let (pair, is_most) = match main_change(diff)? {
        Main::OnlyA(lone) => return Some(only(lone, "A", "-")),
        Main::OnlyB(lone) => return Some(only(lone, "B", "+")),
        Main::Most(pair) => (pair, true),
        Main::Largest(pair) => (pair, false),
    };
    let what = format!(
        "the {} at {}",
        kind_in_sentence(kind(&pair.b)),
        in_sentence(&pair_place(pair))
    );
    let by = match pair.headline().filter(|c| c.change.is_some()) {
        Some(change) if is_told(change) => {
            format!("{} of {}", changed(change), quantity(&change.quantity))
        }
        Some(change) => format!("no difference of {} was seen", quantity(&change.quantity)),
        None => "changed".to_owned(),
    };
    // Two reasons are enough for a sentence.
    let because: String = causes(pair)
        .iter()
        .take(2)
        .map(|cause| format!("; {cause}"))
        .collect();
    let count = diff.pairs.iter().filter(|p| p.is_changed()).count();
    let others = match (is_most, count) {
        (true, _) => "Most of it is in".to_owned(),
        (false, 0) => "What differs most is".to_owned(),
        (false, 1) => "One region changed:".to_owned(),
        (false, n) => format!("{n} regions changed, most of all"),
    };
    Some(format!("{others} {what} ({by}{because})."))
}

/// A region as sentences name it: `the loop at solve.c:61`.
pub(super) fn region(key: &RegionKey) -> String {
    format!(
        "the {} at {}",
        kind_in_sentence(key.construct.name()),
        in_sentence(&place(key))
    )
}

pub(super) fn kind_in_sentence(kind: &str) -> &str {
    match kind {
        "parallel" => "parallel region",
        kind => kind,
    }
}
