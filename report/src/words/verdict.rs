//! Why the program doesn't scale, in a few sentences.

use crate::words;
use crate::words::uneven::mostly_asleep;
use ompfuse_account::model::sampled::LEAST as LEAST_SAMPLES;
use ompfuse_account::model::{
    Account, Efficiencies, Loss, Note, Region, Report, Sampled, Sharing, State,
};
use ompfuse_account::units::{percent, seconds};
use ompfuse_format::Construct;
use ompfuse_fuse::Problem;
use ompfuse_fuse::samples::Asleep;

/// Losses that are told.
const MOST: usize = 3;
/// Smaller ones are none worth telling.
const LEAST: f64 = 0.02;

/// The largest losses with their causes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Verdict {
    /// How much is lost.
    pub(crate) headline: String,
    /// The losses, largest first; empty: none is large.
    pub(crate) losses: Vec<ToldLoss>,
    /// Efficiencies, if they are known.
    pub(crate) efficiencies: Option<String>,
    /// What other numbers of threads would bring, if that can be told.
    pub(crate) prediction: Option<String>,
    /// What this run can't tell, and the command that does.
    pub(crate) hint: Option<String>,
    /// What its samples tell beside this, or how to get more of them.
    pub(crate) samples: Option<String>,
    /// The command that measures what would help without the source, where this run shows something.
    pub(crate) trying: Option<String>,
}

/// A loss in words.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ToldLoss {
    /// `id` of its parallel region.
    pub(crate) region: Option<u32>,
    /// Share of the available time, from 0 to 1.
    pub(crate) share: f64,
    /// Seconds, all threads together.
    pub(crate) seconds: f64,
    /// Where.
    pub(crate) place: Option<String>,
    /// Why.
    pub(crate) cause: String,
    /// What usually helps.
    pub(crate) remedy: Option<String>,
}

/// The verdict; `None`: nothing is known of the run's time.
pub(crate) fn verdict(report: &Report) -> Option<Verdict> {
    let account = report.account.as_ref().filter(|a| a.available_ns > 0);
    let Some(account) = account else {
        return nothing(report);
    };
    let is_plain = is_without_regions(report);
    let missing = unrecorded(report).or_else(|| words::ending::ending(report));
    let large = report.losses.iter().filter(|l| l.share >= LEAST);
    let large: Vec<&Loss> = large.take(MOST).collect();
    // Where threads lack processors, units' times say nothing of others.
    let is_starved = report.running.as_ref().is_some_and(|r| r.is_starved);
    let scaling = report.scaling.as_ref().filter(|_| !is_starved);
    Some(Verdict {
        trying: trying(report),
        hint: match (&missing, is_plain) {
            (Some(_), _) => None,
            (None, true) => functions(report),
            (None, false) => asleep(report).or_else(|| hint(account)),
        },
        headline: match (missing, is_plain) {
            (Some(missing), _) => missing + &recorded(report, account, large.is_empty()),
            (None, true) => headline(report, account, large.is_empty()) + &busiest(report, account),
            (None, false) => headline(report, account, large.is_empty()),
        },
        losses: large.iter().map(|l| told(report, l)).collect(),
        efficiencies: (account.efficiencies.as_ref()).filter(|_| !is_plain).map(
            |e| match is_starved {
                true => efficiencies(e) + "; it counts time without a processor as work",
                false => efficiencies(e),
            },
        ),
        prediction: scaling.and_then(|s| words::prediction(report, s)),
        samples: samples(report, &large),
    })
}

/// With so many samples a second of each thread programs become slower by 3 %.
const MANY: u32 = 1051;

/// How to see the lines that samples tell, and how to get more samples where the largest loss has too few. `large`: the losses.
fn samples(report: &Report, large: &[&Loss]) -> Option<String> {
    let sampled = report.sampled.as_ref()?;
    let behind = large.first().and_then(|loss| loss.behind.as_ref());
    let has_few = behind.is_some_and(|b| b.samples < LEAST_SAMPLES) && sampled.rate < MANY;
    let lines =
        (sampled.samples >= LEAST_SAMPLES).then_some("Hottest lines: ompfuse report --lines");
    let more = has_few.then(|| format!("more samples: ompfuse record --sampling {MANY}"));
    match (lines, more) {
        (Some(lines), Some(more)) => Some(format!("{lines}; {more}")),
        (Some(lines), None) => Some(lines.to_owned()),
        (None, Some(more)) => Some(format!("For the hottest lines, {more}")),
        (None, None) => None,
    }
}

/// Whether no parallel region and no call of MPI is on record: whatever the program does, it isn't OpenMP that takes its time.
pub(crate) fn is_without_regions(report: &Report) -> bool {
    let is_parallel = |r: &Region| r.construct.is_some_and(Construct::is_fork);
    report.mpi.is_none() && !report.regions.iter().any(is_parallel)
}

/// Which files are not recorded that were to be: what the rest loses says little then.
fn unrecorded(report: &Report) -> Option<String> {
    let missing = report.shortcomings.iter().filter_map(|note| match note {
        Note::Problem {
            problem: Problem::NotPatched { file, told },
            ..
        } => Some((file.rsplit('/').next().unwrap_or(file), told)),
        _ => None,
    });
    let missing: Vec<(&str, &String)> = missing.collect();
    let (name, told) = missing.first()?;
    let more = match missing.len() {
        1 => String::new(),
        2 => " and another file do".to_owned(),
        n => format!(" and {} other files do", n - 1),
    };
    let does = if more.is_empty() { " does" } else { "" };
    Some(format!("What {name}{more}{does} is not recorded: {told}"))
}

/// The losses of what is recorded beside it, if there are some.
fn recorded(report: &Report, account: &Account, is_spread: bool) -> String {
    let of_rest = headline(report, account, is_spread);
    match is_spread {
        true => String::new(),
        false => format!(". Of what is recorded: {of_rest}"),
    }
}

/// Of a run without any record.
fn nothing(report: &Report) -> Option<Verdict> {
    let is_empty = report.regions.is_empty() && report.threads == 0 && !report.runs.is_empty();
    let missing = unrecorded(report);
    (is_empty && !report.program.is_empty()).then(|| Verdict {
        hint: functions(report).filter(|_| missing.is_none()),
        headline: missing.unwrap_or_else(|| {
            format!(
                "Nothing was recorded: no OpenMP runtime was called by {} or its libraries",
                words::recorded_program(report)
            )
        }),
        losses: vec![],
        efficiencies: None,
        prediction: None,
        samples: None,
        trying: None,
    })
}

/// With more of the processors' time in other programs no trial is advised.
const TAKEN: f64 = 0.05;

/// What can be tried, if nothing was yet. What others took of the processors is no loss that a setting ends.
fn trying(report: &Report) -> Option<String> {
    let is_alone = report.running.as_ref().is_none_or(|r| {
        r.sharing.is_none_or(|s| s == Sharing::Own) && r.taken.is_none_or(|taken| taken <= TAKEN)
    });
    if !is_alone {
        return None;
    }
    let (first, more) = report.to_try.split_first()?;
    let first_variable = more.iter().find(|text| !text.contains(": "));
    let others = first_variable.map_or(String::new(), |text| format!(", {text}"));
    let rest = more.len() - usize::from(first_variable.is_some());
    let rest = match rest {
        0 => String::new(),
        n => format!(", and {n} more"),
    };
    let words = std::iter::once(&report.program).chain(&report.args);
    let words = words::shell_words(words.map(String::as_str));
    report.tried.is_none().then(|| {
        format!("To measure on this binary what may help ({first}{others}{rest}): ompfuse try -- {words}")
    })
}

/// The command that names functions, where none is on record.
fn functions(report: &Report) -> Option<String> {
    let is_known = report.regions.iter().any(is_code);
    let words = std::iter::once(&report.program).chain(&report.args);
    let words = words::shell_words(words.map(String::as_str));
    if words::causes::is_interpreted(report) {
        return None;
    }
    (!is_known && !report.program.is_empty()).then(|| {
        format!(
            "What takes its time: ompfuse profile --functions '*' --calls pthread,io -- {words} (functions of a library: --functions \
             'lib:*blas*:*')"
        )
    })
}

/// Whether it is a function or loop of the program.
fn is_code(region: &Region) -> bool {
    region.construct.is_some_and(Construct::is_code)
}

/// Which of the functions and loops on record has the most work.
fn busiest(report: &Report, account: &Account) -> String {
    let all_s = account.available_ns as f64 * 1e-9;
    let code = report.regions.iter().filter(|r| is_code(r));
    let most = code.max_by(|a, b| a.work_s.total_cmp(&b.work_s));
    most.map_or(String::new(), |region| {
        format!(
            "; the most work is in {}: {} ({})",
            words::in_sentence(&words::location(region)),
            percent(region.work_s / all_s),
            seconds(region.work_s)
        )
    })
}

/// From this share of useful time on, what is slow is the work itself, or nothing.
const MUCH: f64 = 0.8;

/// Memory's bandwidth, shared lines of caches and contended atomic instructions make units longer, which one run can't tell from work.
fn hint(account: &Account) -> Option<String> {
    let is_one = account.processes.len() <= 1 && account.threads > 1;
    let useful = account.ns(State::Useful) as f64 / account.available_ns as f64;
    (is_one && useful >= MUCH).then(|| {
        format!(
            "Whether memory or atomics slow units down, one run can't tell: --threads 1,{} does",
            account.threads
        )
    })
}

/// From this share on, what threads slept is told.
const ASLEEP: f64 = 0.5;

/// Threads that sleep in their units look as if they worked: for what they wait, OpenMP doesn't tell.
fn asleep(report: &Report) -> Option<String> {
    let share = report.running.as_ref()?.asleep_share();
    let is_call = |r: &Region| {
        r.construct
            .is_some_and(|c| c.is_call() || c == Construct::Io)
    };
    let stopped = report.sampled.as_ref().and_then(stopped);
    let calls = match (stopped, report.regions.iter().any(is_call)) {
        (Some(stopped), _) => stopped,
        (None, true) => "no recorded call tells why".to_owned(),
        (None, false) => "--calls pthread,io names calls that may tell why".to_owned(),
    };
    (share >= ASLEEP).then(|| {
        format!(
            "In at least {} of its work the program's code slept or waited by itself, not for OpenMP: {calls}",
            percent(share)
        )
    })
}

/// Where threads had stopped for most of the time without processor that no wait for OpenMP explains.
fn stopped(sampled: &Sampled) -> Option<String> {
    let mut all = Asleep::default();
    let regions = sampled.regions.iter().filter(|r| r.region.is_some());
    let asleep = regions.filter_map(|r| r.asleep.as_ref());
    asleep.for_each(|asleep| all.absorb(asleep));
    mostly_asleep(&all)
}

fn headline(report: &Report, account: &Account, is_spread: bool) -> String {
    let all_s = account.available_ns as f64 * 1e-9;
    let whose = match (account.processes.len(), account.threads) {
        (0 | 1, 1) => "1 thread's".to_owned(),
        (0 | 1, n) => format!("{n} threads'"),
        (n, _) => format!("{n} processes'"),
    };
    let lost_s = report.lost_s.unwrap_or(0.0);
    let unknown_s = account.ns(State::Unknown) as f64 * 1e-9;
    let unknown = match unknown_s >= LEAST * all_s {
        true => format!("; {} is not known", percent(unknown_s / all_s)),
        false => String::new(),
    };
    if is_spread && lost_s < LEAST * all_s {
        return format!(
            "No loss of 2% or more of {whose} {}{unknown}",
            seconds(all_s)
        );
    }
    let spread = match is_spread {
        true => ", no single loss 2% or more",
        false => "",
    };
    let least = if report.lost_is_least {
        "At least "
    } else {
        ""
    };
    format!(
        "{least}{} of {whose} time is lost ({} of {}){spread}{unknown}",
        percent(lost_s / all_s),
        seconds(lost_s),
        seconds(all_s),
    )
}

/// POP's efficiencies in a line.
pub(crate) fn efficiencies(e: &Efficiencies) -> String {
    let part = |name: &str, value: Option<f64>| match value {
        Some(value) => format!("{name} {value:.2}"),
        None => format!("{name} not known"),
    };
    let openmp = match (e.load_balance, e.scheduling) {
        (Some(_), Some(_)) => format!(
            "{} × {} × {}",
            part("serialization", Some(e.serialization)),
            part("load balance", e.load_balance),
            part("scheduling", e.scheduling)
        ),
        _ => format!(
            "{} × {}",
            part("serialization", Some(e.serialization)),
            part(
                "balance and scheduling",
                (e.serialization > 0.0).then(|| e.openmp / e.serialization)
            )
        ),
    };
    let mut text = format!(
        "parallel efficiency {:.2}; OpenMP {:.2} = {openmp}",
        e.parallel, e.openmp
    );
    if e.mpi.is_none() {
        text = format!("parallel efficiency {:.2} = {openmp}", e.parallel);
    }
    if let Some(mpi) = e.mpi {
        text += &format!(
            "; MPI {mpi:.2}: {}, {}",
            part("communication", e.mpi_communication),
            part("load balance", e.mpi_load_balance)
        );
        let nodes = e.mpi_load_balance_inside_nodes;
        if let Some((inside, between)) = nodes.zip(e.mpi_load_balance_between_nodes) {
            text += &format!(" = {inside:.2} inside nodes × {between:.2} between them");
        }
    }
    text
}

/// Where a loss is, with the line in Python that leads there.
fn place(report: &Report, loss: &Loss) -> Option<String> {
    let place = words::loss_place(report, loss);
    let caller = loss
        .region
        .and_then(|id| words::python_caller(&report.contexts, &report.call_paths, id));
    match (place, caller) {
        (Some(place), Some(caller)) => Some(format!("{place}, called from {caller}")),
        (place, caller) => place.or_else(|| caller.map(|c| format!("what {c} calls"))),
    }
}

fn told(report: &Report, loss: &Loss) -> ToldLoss {
    ToldLoss {
        region: loss.region,
        share: loss.share,
        seconds: loss.seconds,
        place: place(report, loss),
        cause: words::cause(report, loss),
        remedy: words::remedy(report, loss),
    }
}
