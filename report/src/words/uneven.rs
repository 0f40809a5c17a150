//! Slow units against fast ones, in words.

use ompfuse_account::units::{count, percent, seconds};
use ompfuse_format::Construct;
use ompfuse_fuse::samples::{
    Asleep, Difference, Executed, Pair, Reason, StopPlace, Uneven, UnitsAsleep,
};

/// What a construct's units are called.
pub(crate) fn noun(construct: Construct) -> &'static str {
    match construct {
        Construct::Section | Construct::Sections => "sections",
        Construct::Task | Construct::Taskloop => "tasks",
        _ => "ranges",
    }
}

/// What slow units do that fast ones don't. `noun`: what units are called. `None`: it isn't known.
pub(crate) fn reason(uneven: &Uneven, noun: &str) -> Option<String> {
    let times = |e: &Executed| e.slow / e.fast.max(1.0);
    let longer = uneven.slow_s / uneven.fast_s;
    // In the same lines, as many more instructions are more rounds, and no more of them something slower.
    let alike = match uneven.instructions.as_ref().map(times) {
        Some(times) if times >= MOST * longer => "more rounds of an inner loop",
        Some(times) if times <= FEW => "memory, or a slower processor",
        _ => "more rounds of an inner loop, memory, or a slower processor",
    };
    let told = by_samples(uneven, noun, alike)?;
    let executed = |n: f64| count(n.round() as u64);
    let counted = uneven.instructions.map(|Executed { slow, fast }| {
        let (slow, fast) = (executed(slow), executed(fast));
        format!("; counted exactly, they execute {slow} instructions, fast ones {fast}")
    });
    Some(told + &counted.unwrap_or_default())
}

/// Of what slow units take longer more instructions explain so much.
const MOST: f64 = 0.75;
/// So many times the instructions are as good as no more.
const FEW: f64 = 1.2;
/// `alike`: what it may be if units are slow in the same lines.
fn by_samples(uneven: &Uneven, noun: &str, alike: &str) -> Option<String> {
    let Uneven {
        slow_s,
        fast_s,
        iterations_times,
        reason,
        ..
    } = uneven;
    let of = |pair: &Pair| {
        let (slow, fast) = (seconds(pair.slow_s), seconds(pair.fast_s));
        format!(
            "{slow} of {}, fast ones {fast} of {}",
            seconds(*slow_s),
            seconds(*fast_s)
        )
    };
    Some(match reason {
        Reason::Code(Difference { function, line }) => {
            let base = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
            let at = line
                .as_ref()
                .map(|l| format!("{}:{}", base(&l.file), l.line));
            let (place, pair) = match (function, line) {
                (Some(f), line) => {
                    let at = at.filter(|_| {
                        line.as_ref()
                            .is_some_and(|l| l.time.slow_s >= 0.5 * f.time.slow_s)
                    });
                    let at = at.map_or_else(String::new, |at| format!(", {at}"));
                    (f.name.clone() + &at, f.time)
                }
                (None, Some(line)) => (at.unwrap_or_default(), line.time),
                (None, None) => return None,
            };
            format!("slow {noun} spend the time in {place}: {}", of(&pair))
        }
        Reason::Asleep(UnitsAsleep { time, at }) => {
            let at = at
                .as_ref()
                .map_or_else(String::new, |at| format!(" {}", stop(at)));
            format!("slow {noun} gave their processor away{at}: {}", of(time))
        }
        Reason::Interrupted(pair) => format!(
            "slow {noun} were interrupted by other threads or programs: {}",
            of(pair)
        ),
        Reason::Kernel(pair) => format!(
            "slow {noun} spend the time outside of user code, in system calls, page faults, or stopped by a hypervisor: {}",
            of(pair)
        ),
        Reason::Iterations => format!(
            "slow {noun} have {iterations_times:.1} times the others' iterations ({} instead of {})",
            seconds(*slow_s),
            seconds(*fast_s)
        ),
        Reason::Alike => format!(
            "slow {noun} ({}) spend their time in the same lines as fast ones ({}): {alike}",
            seconds(*slow_s),
            seconds(*fast_s)
        ),
        Reason::Unknown => return None,
    })
}

/// How many of the units are meant.
pub(crate) fn meant(uneven: &Uneven) -> String {
    let share = percent(uneven.slow as f64 / uneven.units.max(1) as f64);
    format!("the slowest {} of {} ({share})", uneven.slow, uneven.units)
}

/// Where a thread had stopped, with a preposition: `in futex, called at pool.c:10`.
pub(crate) fn stop(at: &StopPlace) -> String {
    let place = place(at);
    match &at.call {
        Some(call) => format!("in {call}, called {place}"),
        None => format!("while memory was fetched for code {place}"),
    }
}

/// Where a call was made, with a preposition.
pub(crate) fn place(at: &StopPlace) -> String {
    let StopPlace {
        call: _,
        function,
        file,
        line,
        object,
    } = at;
    let base = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let line = file.as_deref().zip(*line);
    match (line, function, object) {
        (Some((file, line)), Some(function), _) => format!("at {}:{line} ({function})", base(file)),
        (Some((file, line)), None, _) => format!("at {}:{line}", base(file)),
        (None, Some(function), Some(object)) => format!("by {function} of {}", base(object)),
        (None, Some(function), None) => format!("by {function}"),
        (None, None, Some(object)) => format!("by {}", base(object)),
        (None, None, None) => "at a place that isn't known".to_owned(),
    }
}

/// Where most of the time without processor was spent; `None`: at no one place, or it isn't known.
pub(crate) fn mostly_asleep(asleep: &Asleep) -> Option<String> {
    let main = asleep.main()?;
    Some(format!("most of that {}", stop(&main.at)))
}
