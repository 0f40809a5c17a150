//! Losses, their causes and what usually helps, in words.

mod behind;
mod places;
mod prediction;
mod remedies;
mod tasks;

use behind::{mostly, serial_part, slow};
pub(crate) use places::{cause_place, loss_place};
use places::{named, place};
pub use prediction::{lower_bound, path, prediction, why};
pub(in crate::words) use remedies::is_interpreted;
pub use remedies::{remedy, schedule};
use tasks::of_tasks;

use ompfuse_account::model::{Behind, BusiestRank, Cause, Lock, Loss, LossKind, Report};
use ompfuse_account::units::{self, count, seconds};

/// What is held for a smaller share of a region's time costs by being handed over.
const MUCH_HELD: f64 = 0.3;

/// Why a loss is there: what, where, how much.
pub fn cause(report: &Report, loss: &Loss) -> String {
    let told = told(report, loss.loss, &loss.cause, loss.behind.as_ref());
    match loss.cause {
        // Else the calls' sum would be less than what is lost.
        Cause::Communication { calls, call_s, .. }
            if loss.seconds > WITH_IDLE * calls as f64 * call_s =>
        {
            told + "; other threads have nothing to do meanwhile"
        }
        _ => told,
    }
}

/// A loss that is longer than its calls by more has threads in it that idle.
const WITH_IDLE: f64 = 1.05;

/// `behind`: what samples tell of the work.
fn told(report: &Report, kind: LossKind, cause: &Cause, behind: Option<&Behind>) -> String {
    let words = match cause {
        Cause::AtRank { rank, cause } => {
            let told = told(report, kind, cause, behind);
            return format!("most on rank {rank}: {told}");
        }
        Cause::SerialPart { .. } => return serial_part(report, cause, behind),
        Cause::Communication { .. } | Cause::LateSender { .. } | Cause::Call { .. } => {
            of_processes(report, cause)
        }
        Cause::UnevenUnits { .. }
        | Cause::UnevenDistribution { .. }
        | Cause::FewUnits { .. }
        | Cause::OneThread { .. }
        | Cause::CostlyRanges { .. } => of_units(report, cause),
        Cause::FewTasks { .. }
        | Cause::SlowCreation { .. }
        | Cause::UnevenTasks { .. }
        | Cause::UntakenTasks { .. }
        | Cause::Dependences { .. }
        | Cause::OneByOne { .. }
        | Cause::AtOnce { .. }
        | Cause::AwaitsEvent { .. }
        | Cause::WaitsForTasks { .. }
        | Cause::CostlyTasks { .. } => of_tasks(report, cause),
        Cause::Held { .. }
        | Cause::InOrder { .. }
        | Cause::Reduction { .. }
        | Cause::ManyBarriers { .. } => of_exclusion(report, cause),
        Cause::UnevenCode
        | Cause::Late
        | Cause::Nested { .. }
        | Cause::ShortRegions { .. }
        | Cause::NoProcessor { .. }
        | Cause::SmallerTeam { .. } => of_teams(report, cause),
        Cause::Unknown => None,
    };
    let mostly = slow(cause, behind).or_else(|| mostly(behind));
    let mostly = mostly.map(|mostly| format!("; {mostly}"));
    words.unwrap_or_else(|| unknown(kind).to_owned()) + &mostly.unwrap_or_default()
}

/// What is said where the records don't tell the cause.
fn unknown(kind: LossKind) -> &'static str {
    match kind {
        LossKind::Runtime => "in the OpenMP runtime",
        LossKind::TaskWait => "threads wait for tasks; the records don't tell which",
        LossKind::Forking => {
            "starting its threads takes longer, or these wait for a processor; the records don't tell which"
        }
        LossKind::Waiting => "threads wait at barriers; the records don't tell for what",
        _ => "the records don't tell why",
    }
}

/// Of calls.
fn of_processes(report: &Report, cause: &Cause) -> Option<String> {
    let at = |id: &u32| named(report, *id);
    Some(match cause {
        Cause::Communication {
            at: id,
            calls,
            call_s,
            busiest,
        } => format!(
            "a process waits in {}, {} of {}{}",
            at(id),
            if *calls == 1 {
                "1 call".to_owned()
            } else {
                format!("{} calls", count(*calls))
            },
            seconds(*call_s),
            busy(busiest)
        ),
        Cause::LateSender {
            at: id,
            receives,
            late,
            late_s,
            busiest,
        } => format!(
            "the sender is late for {} of {} receives in {}, by {}{}",
            count(*late),
            count(*receives),
            at(id),
            seconds(*late_s),
            busy(busiest)
        ),
        Cause::Call {
            at: id,
            calls,
            call_s,
        } => format!(
            "threads are in {}, {} of {}",
            at(id),
            if *calls == 1 {
                "1 call".to_owned()
            } else {
                format!("{} calls", count(*calls))
            },
            seconds(*call_s)
        ),
        _ => return None,
    })
}

/// Of loops and sections.
fn of_units(report: &Report, cause: &Cause) -> Option<String> {
    let at = |id: &u32| named(report, *id);
    Some(match cause {
        Cause::UnevenUnits {
            at: id,
            is_sections,
            first,
            iterations,
            times_mean,
            instructions_times_mean,
            misses_times_mean,
            misses_event,
            ..
        } => {
            let what = match (is_sections, iterations, first) {
                (true, _, Some(first)) => format!("section {first}"),
                (true, _, None) => "the longest section".to_owned(),
                (false, 0 | 1, Some(first)) => format!("iteration {first}"),
                (false, 0 | 1, None) => "the longest iteration".to_owned(),
                (false, n, Some(first)) => format!("iterations {first}..{}", first + *n as i64 - 1),
                (false, _, None) => "the longest range's iterations".to_owned(),
            };
            let counts = match (instructions_times_mean, misses_times_mean, misses_event) {
                // What takes longer with as many more instructions has more to do.
                (Some(i), _, _) if *i >= 0.5 * times_mean => {
                    format!(", with {} times the instructions", times(*i))
                }
                (Some(i), Some(m), Some(event)) if *m >= 2.0 * i => format!(
                    ", with {} times the instructions and {} times the {event}",
                    times(*i),
                    times(*m)
                ),
                (Some(i), _, _) => format!(", with only {} times the instructions", times(*i)),
                _ => String::new(),
            };
            let each = if *iterations > 1 { " each" } else { "" };
            format!(
                "{what} of the {} take{} {} times the others' mean{each}{counts}",
                at(id),
                if *iterations > 1 { "" } else { "s" },
                times(*times_mean)
            )
        }
        Cause::UnevenDistribution {
            at: id,
            schedule,
            slowest_times_mean,
            ..
        } => {
            let by = schedule.as_ref().map(|s| format!(" (schedule {s})"));
            let (loops, by) = (at(id), by.unwrap_or_default());
            match slowest_times_mean {
                Some(factor) => format!(
                    "the {loops}{by} gives the slowest thread {} times the mean work",
                    times(*factor)
                ),
                None => format!("the {loops}{by}, or the one behind it, gives a thread more work"),
            }
        }
        Cause::FewUnits {
            at: id,
            is_sections,
            units,
            threads,
            ..
        } => format!(
            "the {} has {} {} for {threads} threads",
            at(id),
            times(*units),
            if *is_sections { "sections" } else { "ranges" }
        ),
        Cause::OneThread { at: id } => {
            format!("one thread executes the {} while the others wait", at(id))
        }
        Cause::CostlyRanges {
            at: id,
            fetch_s,
            range_s,
            ..
        } => format!(
            "fetching a range of the {} takes {}, and it lasts {}",
            at(id),
            seconds(*fetch_s),
            seconds(*range_s)
        ),
        _ => return None,
    })
}

/// Of what threads enter one at a time, and of barriers.
fn of_exclusion(report: &Report, cause: &Cause) -> Option<String> {
    let at = |id: &u32| named(report, *id);
    let plain = |id: &u32| place(report, *id);
    Some(match cause {
        Cause::Held {
            at: id,
            held_s,
            of_wall,
            entries,
            waits_at,
            ..
        } => {
            let each = held_s.map(|s| s / (*entries).max(1) as f64);
            let (there, elsewhere) = match waits_at {
                Some(id) => (" there", format!("; they wait most at {}", plain(id))),
                None => ("", String::new()),
            };
            let held = match (of_wall, each) {
                (Some(share), _) if *share >= MUCH_HELD => format!(
                    ", which is held{there} for {} of the region's time",
                    percent(share.min(1.0))
                ),
                (_, Some(each)) => format!(
                    ": {} times entered{there}, {} inside each",
                    count(*entries),
                    seconds(each)
                ),
                _ => format!(": {} times entered", count(*entries)),
            };
            let most = most_wanted(report, *id);
            let wait = match waits_at {
                Some(_) => "wait for the",
                None => "wait for their turn at the",
            };
            format!("threads {wait} {}{most}{held}{elsewhere}", at(id))
        }
        Cause::InOrder {
            at: id,
            entries,
            slow,
            ..
        } => {
            let slow = slow.as_ref().and_then(|slow| of_units(report, slow));
            let slow = slow.map_or_else(String::new, |slow| format!(", behind slow ones: {slow}"));
            format!(
                "iterations wait for their turn at the {}, {} times{slow}",
                at(id),
                count(*entries)
            )
        }
        Cause::Reduction {
            at: id,
            joins,
            held_s,
        } => {
            let each = held_s.map(|s| s / (*joins).max(1) as f64);
            format!(
                "threads wait to join their parts of the reduction of the {}: {} times{}",
                at(id),
                count(*joins),
                each.map_or_else(String::new, |s| format!(", {} each", seconds(s)))
            )
        }
        Cause::ManyBarriers {
            count: times,
            wait_s,
            at: id,
        } => format!(
            "{} barriers{}, {} of waiting a thread at each",
            count(*times),
            id.as_ref()
                .map_or_else(String::new, |id| format!(" at {}", plain(id))),
            seconds(*wait_s)
        ),
        _ => return None,
    })
}

/// Of whole teams.
fn of_teams(report: &Report, cause: &Cause) -> Option<String> {
    let at = |id: &u32| named(report, *id);
    Some(match cause {
        Cause::UnevenCode => "the region's own code takes longer on some threads".to_owned(),
        Cause::Late => "threads wait for one that began later".to_owned(),
        Cause::Nested { at: id } => {
            format!("threads wait for the nested {}", at(id))
        }
        Cause::ShortRegions {
            executions,
            wall_s,
            cost_s,
        } => {
            let how_often = match executions {
                1 => "starting and ending its threads takes".to_owned(),
                n => format!("it is started {} times:", count(*n)),
            };
            format!(
                "{how_often} {} a thread, of {}",
                seconds(*cost_s),
                seconds(*wall_s)
            )
        }
        Cause::NoProcessor {
            threads,
            processors,
            limit,
            sharing,
            taken,
        } => super::running::who_had_them((*threads, *processors, *limit), (*sharing, *taken)),
        Cause::SmallerTeam {
            team,
            threads,
            beside_nested: true,
        } => format!(
            "beside its nested regions, its own code runs on {} of {threads} threads",
            times(*team)
        ),
        Cause::SmallerTeam { team, threads, .. } => format!(
            "its team has {} of the {threads} threads that the program has at other times",
            times(*team)
        ),
        _ => return None,
    })
}

/// The rank that works most.
fn busy(busiest: &Option<BusiestRank>) -> String {
    busiest.as_ref().map_or_else(String::new, |b| {
        format!(
            "; rank {} has {} times the mean work",
            b.rank,
            times(b.times_mean)
        )
    })
}

/// A factor: two digits are enough.
pub(crate) fn times(factor: f64) -> String {
    match factor {
        f if f >= 999.5 => units::times(f),
        f if f >= 9.95 => format!("{f:.0}"),
        f if f < 1.1 => format!("{f:.2}"),
        f if f == f.round() => format!("{f:.0}"),
        f => format!("{f:.1}"),
    }
}

fn percent(share: f64) -> String {
    match share * 100.0 {
        p if p >= 9.95 => format!("{p:.0}%"),
        p => format!("{p:.1}%"),
    }
}

/// Which of the several locks that a region takes is waited for most.
fn most_wanted(report: &Report, region: u32) -> String {
    let locks = report.locks.iter().filter(|l| l.regions.contains(&region));
    let locks: Vec<&Lock> = locks.collect();
    let all_s: f64 = locks.iter().map(|l| l.times.enter_s).sum();
    let most = (locks.iter()).max_by(|a, b| a.times.enter_s.total_cmp(&b.times.enter_s));
    match most.filter(|_| locks.len() > 1 && all_s > 0.0) {
        Some(most) => {
            let share = percent(most.times.enter_s / all_s);
            format!(" ({share} of it for {})", super::locks::lock(most))
        }
        None => String::new(),
    }
}

#[cfg(test)]
mod tests;
