//! What is said of a series over numbers of threads.

use super::names;
use ompfuse_account::model::series::{
    Loss, Scaling, Series, SeriesCause, SeriesNote, SeriesPlace, SeriesPoint,
};
use ompfuse_account::units::{percent, seconds, times};
use ompfuse_format::Construct;

/// Units take longer that take so many times as long, and so many at least whichever runs are compared.
const INFLATED: [f64; 2] = [1.1, 1.05];
/// Lines are named whose units take longer, if that is such a share of all thread time.
const NAMED: f64 = 0.05;

/// A program that is so many times as fast is faster, as it is printed.
const NOTICED: f64 = 1.005;

/// From this efficiency on there is nothing to look for.
const GOOD: f64 = 0.95;

/// The verdict: how well the program scales, what limits it, and up to where threads pay off; a sentence each.
pub fn series_verdict(series: &Series) -> Vec<String> {
    let (Some(first), Some(last)) = (series.points.first(), series.points.last()) else {
        return vec![];
    };
    let mut sentences = vec![speed(series.scaling, first, last)];
    match &series.limit {
        _ if last.efficiency >= GOOD => {}
        Some(loss) => sentences.push(limits(loss, first, last)),
        None if last.stack.is_none() => sentences
            .push("What limits it can't be told: parallel regions overlap in time.".to_owned()),
        None => {}
    }
    sentences.extend(inflated(series, first, last));
    if let Some(threads) = series.pays_off_until {
        sentences.extend(no_gain(series, threads));
    }
    sentences
}

/// What more threads than those that pay off bring.
fn no_gain(series: &Series, threads: u32) -> Option<String> {
    let until = series.points.iter().find(|p| p.threads == threads)?;
    let more = series.points.iter().filter(|p| p.threads > threads);
    let best = more.map(|p| p.speedup / until.speedup).fold(0.0, f64::max);
    let more = match threads {
        1 => "More than 1 thread does".to_owned(),
        n => format!("More than {n} threads do"),
    };
    let gain = match best >= NOTICED {
        true => format!("with more it is at most {} times as fast", times(best)),
        false => "with more it is no faster".to_owned(),
    };
    Some(format!("{more} not pay off: {gain}."))
}

fn speed(scaling: Scaling, first: &SeriesPoint, last: &SeriesPoint) -> String {
    let (least, most) = (first.threads, last.threads);
    let efficiency = percent(last.efficiency);
    match scaling {
        Scaling::Strong if last.speedup >= 1.0 => format!(
            "With {} it is {} times as fast as with {least} (efficiency {efficiency}).",
            threads(most),
            times(last.speedup)
        ),
        Scaling::Strong => format!(
            "With {} it takes {} times as long as with {least} (efficiency {efficiency}).",
            threads(most),
            times(1.0 / last.speedup)
        ),
        Scaling::Weak => format!(
            "With {} and {} times the work it takes {} times as long as with {least} (efficiency {efficiency}).",
            threads(most),
            times(f64::from(most) / f64::from(least)).trim_end_matches(".00"),
            times(last.wall.mean_s / first.wall.mean_s)
        ),
    }
}

/// The line with the most units that take longer, if that isn't what limits.
fn inflated(series: &Series, first: &SeriesPoint, last: &SeriesPoint) -> Option<String> {
    let is_named = |l: &&Loss| {
        l.seconds >= NAMED * last.available_s
            && series.limit.as_ref() != Some(*l)
            && takes_longer(l)
    };
    let loss = last.losses.iter().find(is_named)?;
    Some(format!(
        "In the {} {}.",
        series_place(loss.place.as_ref()?),
        longer(loss, loss.inflation?.times, last.threads, first.threads)
    ))
}

fn takes_longer(loss: &Loss) -> bool {
    loss.inflation
        .is_some_and(|i| i.times >= INFLATED[0] && i.between[0] >= INFLATED[1])
}

/// What is slower there, and what that may come of.
fn longer(loss: &Loss, factor: f64, most: u32, least: u32) -> String {
    let units = match loss.place.as_ref().and_then(|p| p.construct) {
        Some(Construct::Task) => "tasks",
        Some(Construct::Sections) => "sections",
        _ => "iterations",
    };
    format!(
        "the same {units} take {} times as long with {} as with {least}: memory's bandwidth, lines of the cache that threads share, or \
         contended atomics",
        times(factor),
        threads(most)
    )
}

fn threads(n: u32) -> String {
    match n {
        1 => "1 thread".to_owned(),
        n => format!("{n} threads"),
    }
}

/// What limits a program: the largest loss.
fn limits(loss: &Loss, first: &SeriesPoint, last: &SeriesPoint) -> String {
    let share = loss.share.map_or(String::new(), |share| {
        format!(", {} of what is lost", percent(share.min(1.0)))
    });
    let Some(place) = &loss.place else {
        let serial_s = last.stack.map_or(0.0, |s| s.serial_s);
        return match loss.cause {
            SeriesCause::Serial => format!(
                "The serial part limits: outside of parallel regions the program takes {} more than with {}{share}.",
                seconds(loss.seconds),
                first.threads
            ),
            _ => format!(
                "The serial part limits: it takes {} of {}, in which the other threads wait {}{share}.",
                seconds(serial_s),
                seconds(last.wall.mean_s),
                seconds(loss.all_s)
            ),
        };
    };
    format!(
        "The {} limits: {}{share}.",
        series_place(place),
        lost(loss, first.threads, last.threads) + &without_processor(loss, last)
    )
}

/// Code that takes longer, on a machine with too few processors, does not lack speed.
fn without_processor(loss: &Loss, last: &SeriesPoint) -> String {
    match last.starved.filter(|_| loss.cause == SeriesCause::Work) {
        Some(share) => format!(
            ", but threads that worked had no processor for {} of the time",
            percent(share)
        ),
        None => String::new(),
    }
}

/// What a loss is, in words.
fn lost(loss: &Loss, base: u32, most: u32) -> String {
    let all = seconds(loss.all_s);
    let more = seconds(loss.seconds);
    let construct = loss.place.as_ref().and_then(|p| p.construct);
    let enters = construct.is_some_and(Construct::is_exclusive);
    match loss.cause {
        SeriesCause::Work => {
            let code = format!(
                "its code takes {more} more thread time than with {}",
                threads(base)
            );
            match loss.inflation {
                Some(i) if takes_longer(loss) => {
                    format!("{code}: {}", longer(loss, i.times, most, base))
                }
                Some(i) if i.between[1] < INFLATED[1] => format!(
                    "{code}, though the same units take {} times as long: there is more of it",
                    times(i.times)
                ),
                _ => code,
            }
        }
        SeriesCause::Synchronization if enters => format!("threads wait {all} to enter it"),
        SeriesCause::Synchronization => format!("threads wait {all} for each other there"),
        SeriesCause::Imbalance => format!("threads wait {all} for slower ones"),
        SeriesCause::LimitedParallelism => {
            format!("threads have nothing to do for {all} while others work")
        }
        SeriesCause::Management => {
            format!("the OpenMP runtime takes {all} to start, feed and end threads")
        }
        SeriesCause::Communication => format!("MPI takes {all}, idle threads included"),
        SeriesCause::Call => format!("threads wait {all} in these calls"),
        SeriesCause::Unused => format!("its teams leave threads unused for {all}"),
        SeriesCause::Serial | SeriesCause::SerialIdle | SeriesCause::Unknown => {
            format!("{all} more are lost, it isn't known to what")
        }
    }
}

/// A construct and its place: `critical at solve.c:61`.
pub(crate) fn series_place(place: &SeriesPlace) -> String {
    let construct = match place.construct {
        Some(Construct::Parallel) => "parallel region",
        Some(Construct::Critical) => "critical section",
        Some(construct) => construct.name(),
        None => "region",
    };
    let place = names::in_sentence(&series_location(place));
    format!("{construct} at {place}")
}

/// A construct's place: `solve.c:61`.
pub(crate) fn series_location(place: &SeriesPlace) -> String {
    names::place(
        place.source.as_ref(),
        place.function.as_deref(),
        &place.name,
    )
}

/// What thread time goes to, in a word or two.
pub(crate) fn series_cause(cause: SeriesCause) -> &'static str {
    match cause {
        SeriesCause::Work => "work",
        SeriesCause::Synchronization => "synchronization",
        SeriesCause::Imbalance => "imbalance",
        SeriesCause::LimitedParallelism => "limited parallelism",
        SeriesCause::Management => "management",
        SeriesCause::Serial => "serial code",
        SeriesCause::SerialIdle => "idle beside serial code",
        SeriesCause::Unused => "unused threads",
        SeriesCause::Communication => "communication",
        SeriesCause::Call => "waiting in calls",
        SeriesCause::Unknown => "unknown",
    }
}

/// Number of threads of a note, and a share, if it is of the kind that is asked for.
type ByThreads = fn(&SeriesNote) -> Option<(u32, Option<f64>)>;

/// What makes a series less than complete, in sentences: one for all numbers of threads of which the same is true.
pub fn series_notes(notes: &[SeriesNote]) -> Vec<String> {
    let list = |of: ByThreads| {
        let found = notes.iter().filter_map(of).map(|(n, share)| match share {
            Some(share) => format!("{} with {n}", percent(share)),
            None => n.to_string(),
        });
        let found: Vec<String> = found.collect();
        (!found.is_empty()).then(|| found.join(", "))
    };
    let starved = list(|note| match *note {
        SeriesNote::Starved { threads, share } => Some((threads, Some(share))),
        _ => None,
    });
    let probes = list(|note| match *note {
        SeriesNote::Probes { threads, share } => Some((threads, Some(share))),
        _ => None,
    });
    let in_part = list(|note| match *note {
        SeriesNote::InPart { threads } => Some((threads, None)),
        _ => None,
    });
    let overlapping = list(|note| match *note {
        SeriesNote::Overlapping { threads } => Some((threads, None)),
        _ => None,
    });
    let mut sentences: Vec<String> = notes.iter().filter_map(one).collect();
    sentences.extend(starved.map(|list| {
        format!("threads that worked had no processor for a part of the time ({list}): the machine was busy, or has too few")
    }));
    sentences.extend(
        probes.map(|list| format!("probes took an estimated part of the threads' time ({list})")),
    );
    sentences.extend(in_part.map(|list| {
        format!("not everything was recorded ({list} threads), so some classes may be unknown")
    }));
    sentences.extend(overlapping.map(|list| {
        format!("parallel regions overlap in time ({list} threads): the program's thread time is not divided")
    }));
    sentences
}

fn one(note: &SeriesNote) -> Option<String> {
    Some(match note {
        SeriesNote::MoreThreadsThanProcessors {
            threads: n,
            processors,
        } => format!(
            "from {} on there are more threads than processors ({processors}): those that compute take turns",
            threads(*n)
        ),
        SeriesNote::Failed { run } => {
            format!("{run}: the program failed or did not end in an orderly way")
        }
        SeriesNote::Nested { regions: 1 } => {
            "a parallel region was executed inside another one: the program's bars count its time as work of that one".to_owned()
        }
        SeriesNote::Nested { regions } => format!(
            "{regions} parallel regions were executed inside others: the program's bars count their time as work of those"
        ),
        SeriesNote::Single => {
            "a number of threads was run once: how much runs differ by chance is unknown (--repeat 3 tells)"
                .to_owned()
        }
        SeriesNote::ArgumentsDiffer => {
            "the runs had different arguments: if the work grows with the threads, give --weak".to_owned()
        }
        SeriesNote::HostsDiffer => "the runs were recorded on different hosts".to_owned(),
        SeriesNote::Starved { .. }
        | SeriesNote::Probes { .. }
        | SeriesNote::InPart { .. }
        | SeriesNote::Overlapping { .. } => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::series_verdict;
    use ompfuse_account::model::series::Scaling;
    use ompfuse_compare::series::{Measured, over_threads};
    use ompfuse_compare::testing::run;

    /// A program pays off that gets faster all the time, however far it is from perfect.
    #[test]
    fn more_threads_pay_off_as_long_as_it_gets_faster() {
        let of = |points: &[(u32, f64)]| {
            let runs: Vec<Measured> = points.iter().map(|&(n, s)| run(n, 1.0 / s, &[])).collect();
            let series = over_threads(&runs, Scaling::Strong).unwrap();
            let said = series_verdict(&series);
            let said = said.into_iter().find(|s| s.contains("not pay off"));
            assert_eq!(said.is_some(), series.pays_off_until.is_some(), "{said:?}");
            (series.pays_off_until, said.unwrap_or_default())
        };
        assert_eq!(of(&[(1, 1.0), (2, 1.33), (4, 2.29), (8, 4.25)]).0, None);
        assert_eq!(of(&[(1, 1.0), (8, 7.5), (9, 8.4)]).0, None);
        let (until, said) = of(&[(1, 1.0), (2, 1.9), (4, 2.0), (8, 2.1)]);
        assert_eq!(until, Some(2));
        assert!(said.ends_with("at most 1.11 times as fast."), "{said}");
        let (until, said) = of(&[(1, 1.0), (2, 0.7)]);
        assert_eq!(until, Some(1));
        assert!(said.ends_with("no faster."), "{said}");
    }
}
