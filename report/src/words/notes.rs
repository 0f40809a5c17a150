//! What makes numbers less than complete or exact, as sentences.

use super::ranks;
use ompfuse_account::damage;
use ompfuse_account::model::{Note, Report, UnattributedShare};
use ompfuse_account::units::{count, percent, seconds};
use ompfuse_fuse::Health;

/// Everything that makes the report's numbers less than complete or exact.
pub fn notes(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = &report.shortcomings[..];
    while let Some(first) = rest.first() {
        // What is told of several processes alike is one line, so all of a run's are looked at together.
        let same =
            |n: &&Note| run_of_health(n).is_some() && run_of_health(n) == run_of_health(first);
        let alike = rest.iter().take_while(same).count();
        let (now, later) = rest.split_at(alike.max(1));
        rest = later;
        let run = match (report.runs.len() > 1, run(first)) {
            (true, Some(run)) => format!("run {run}: "),
            _ => String::new(),
        };
        match alike {
            0 => lines.extend(one(first).map(|line| format!("{run}{line}"))),
            _ => {
                let words = damage::health(&of_health(now));
                lines.extend(words.iter().map(|line| format!("{run}{line}")));
            }
        }
    }
    lines
}

/// What a run that was recorded with `--units sums` has not, and how to get it.
pub const SUMS_ONLY: &str = "recorded with --units sums: there are only sums, and no units to export, list or match by label; \
     record without --units sums for these";

/// The run that a note is about.
fn run(note: &Note) -> Option<u16> {
    match note {
        Note::LostRecords { run, .. }
        | Note::UnlabelledXus { run, .. }
        | Note::UnknownSites { run, .. }
        | Note::Problem { run, .. }
        | Note::Window { run, .. }
        | Note::SumsOnly { run }
        | Note::Switching { run, .. }
        | Note::SwitchingUnknown { run, .. } => Some(*run),
        _ => None,
    }
}

/// The run, if the note is about what its reader found missing or broken.
fn run_of_health(note: &Note) -> Option<u16> {
    match note {
        Note::LostRecords { run, .. }
        | Note::UnlabelledXus { run, .. }
        | Note::UnknownSites { run, .. }
        | Note::Problem { run, .. } => Some(*run),
        _ => None,
    }
}

/// What a run's reader found, of these notes.
fn of_health(notes: &[Note]) -> Health {
    let mut health = Health::default();
    for note in notes {
        match note {
            Note::LostRecords { records, .. } => health.lost_records = *records,
            Note::UnlabelledXus { xus, .. } => health.unlabelled_xus = *xus,
            Note::UnknownSites { intervals, .. } => health.unknown_sites = *intervals,
            Note::Problem { problem, .. } => health.problems.push(problem.clone()),
            _ => {}
        }
    }
    health
}

/// A note without others beside it.
fn alone(note: &Note) -> Option<String> {
    let health = damage::health(&of_health(std::slice::from_ref(note)));
    health.into_iter().next().or_else(|| one(note))
}

/// A note that stands for itself.
pub(super) fn one(note: &Note) -> Option<String> {
    Some(match note {
        Note::LostRecords { .. }
        | Note::UnlabelledXus { .. }
        | Note::UnknownSites { .. }
        | Note::Problem { .. } => return None,
        Note::Window { spans_s, of_s, .. } => window(spans_s, *of_s),
        Note::Switching {
            each_s,
            switches,
            cost_s,
            of_s,
            ..
        } => format!(
            "counting the processor's events costs at least {} at each switch of a thread here: for {} switches {} of the \
             threads' {}, most of it in what waits",
            seconds(*each_s),
            count(*switches),
            seconds(*cost_s),
            seconds(*of_s)
        ),
        Note::SwitchingUnknown {
            each_s,
            unknown,
            processes,
            ..
        } => format!(
            "counting the processor's events costs at least {} at each switch of a thread here; how many there were is not \
             known of {unknown} of {processes} processes, which did not end in an orderly way",
            seconds(*each_s)
        ),
        Note::Unrecorded { share, in_part } => unrecorded(*share, *in_part),
        Note::Unattributed { events } => unattributed(events),
        Note::PathsFolded { most } => format!(
            "there are more than {} call paths: further ones are shown directly below their parallel region",
            count(*most)
        ),
        Note::SumsOnly { .. } => SUMS_ONLY.to_owned(),
        Note::Instances => {
            "event sets took turns in one run: the counts of a row come from several executions of the same region, one for \
                 each set"
                .to_owned()
        }
        Note::Unbalanced { threads, of } => format!(
            "on {threads} of {of} threads, the intervals' own times and counts don't add up to the thread's"
        ),
        Note::Rank { rank, state } => return ranks::end(*rank, *state),
        Note::RanksMissing { ranks } => ranks::missing(ranks),
        Note::RanksSilent { ranks, of } => ranks::silent(ranks, *of),
        Note::RankUnreadable { folder, reason } => format!("left out, {folder}: {reason}"),
        Note::AtRanks { ranks, note } => ranks::at(ranks, &alone(note)?),
        Note::RegionsLeftOut { regions, seconds: s } => format!(
            "the summary has no room for {regions} small regions, which have {}; sums have their time",
            seconds(*s)
        ),
    })
}

fn window(spans: &[[f64; 2]], of: Option<f64>) -> String {
    let of = of.map_or_else(String::new, |d| format!(" of {}", seconds(d)));
    if spans.is_empty() {
        return format!(
            "the recording was paused all the time{of}: no region was recorded, only the code outside of regions"
        );
    }
    let from_to = |[from, to]: &[f64; 2]| format!("from {} to {}", seconds(*from), seconds(*to));
    let spans: Vec<String> = spans.iter().map(from_to).collect();
    format!(
        "recorded {}{of}: regions that began at other times were not recorded; code outside of regions is that of the whole \
             run",
        spans.join(" and ")
    )
}

fn unrecorded(share: f64, in_part: bool) -> String {
    let why = match in_part {
        false => "regions were switched off meanwhile, or the program paused the recording",
        true => "its regions were recorded in part, or were switched off meanwhile",
    };
    format!(
        "{} of the threads' time is in no region: {why}; coverage and overheads are only of what was recorded",
        percent(share)
    )
}

fn unattributed(events: &[UnattributedShare]) -> String {
    let share = |e: &UnattributedShare| format!("{} of {}", percent(e.share), e.event);
    let events: Vec<String> = events.iter().map(share).collect();
    format!(
        "{} were counted outside of the recorded units and belong to none: in a partial recording, events that need a system \
             call are read for recorded units only",
        events.join(", ")
    )
}
