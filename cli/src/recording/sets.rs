//! Which events each run counts.

use super::RecordingArgs;
use crate::event_sets::Known;
use crate::output::{note, remark};
use crate::select::SelectArgs;
use anyhow::{Result, bail};
use ompfuse_format::control::MAX_SETS;
use ompfuse_format::event::{exact, is_hardware};
use ompfuse_format::record::MAX_COUNTERS;

/// What is patched, where events that patched code counts ask for that, and the other events that are named: of units, and of regions.
/// Those cost nothing to read, so units always have them.
pub(super) fn counting(args: &RecordingArgs) -> (SelectArgs, [Option<String>; 2]) {
    let mut selection = args.selection.clone();
    let lists = [&args.events, &args.region_events];
    let names = lists.into_iter().flatten().flat_map(|l| l.split(','));
    for event in names.filter_map(|name| exact::number(name.trim())) {
        selection.functions.count_event(event);
    }
    let others = |list: &String| {
        let others = list.split(',').filter(|name| !exact::is(name.trim()));
        let others: Vec<&str> = others.collect();
        match others.is_empty() {
            true => "none".to_owned(),
            false => others.join(","),
        }
    };
    (selection, lists.map(|list| list.as_ref().map(others)))
}

/// Chooses what is counted by default where events share the processor's counters.
pub(super) fn sharing_counters<'e>(
    args: &RecordingArgs,
    events: &mut Vec<&'e str>,
    of_regions: &mut Vec<&'e str>,
) {
    if args.region_events.is_none() {
        // Counters that are shared are read by the kernel in any case.
        events.append(of_regions);
    }
    if events.iter().any(|e| is_hardware(e)) {
        // What shares counters, and the clock beside it: there is not room for everything.
        let is_kept = |e: &&str| is_hardware(e) || exact::is(e) || *e == "task-clock";
        let left_out: Vec<&str> = events.iter().copied().filter(|e| !is_kept(e)).collect();
        events.retain(is_kept);
        if !left_out.is_empty() {
            note(format_args!(
                "not counted, because one run has no room for all events: {} (--events names those to count)",
                left_out.join(", ")
            ));
        }
    }
}

/// The event sets of each run. `is_by_default`: nobody has named events of units.
pub(super) fn planned(
    args: &RecordingArgs,
    events: &[&str],
    known: &Known,
    is_by_default: bool,
) -> Result<Vec<Vec<Vec<String>>>> {
    // Sets that take turns in one run are combined by instance: they need not share events.
    let in_one_run = args.is_in_one_run();
    let planned = match in_one_run {
        true => args.sets.plan(events),
        false => args.sets.planned(events, &known.correlations),
    };
    let (mut sets, left_out) = args.sets.limited(planned, events);
    if !left_out.is_empty() {
        note(format_args!(
            "not counted, {}: {}",
            args.sets.why_left_out(sets.len()),
            left_out.join(", ")
        ));
    }
    if sets.is_empty() {
        sets.push(Vec::new()); // times can always be recorded
    }
    if args.threads.is_some() && is_by_default && !in_one_run {
        sets.truncate(1); // a series is about times
    }
    if in_one_run && sets.len() == 1 {
        remark(format_args!(
            "one run counts all of these events at once: --rotate changes nothing"
        ));
    }
    if args.is_multiplexed() {
        check_times(&sets)?;
    } else if in_one_run && sets.len() > MAX_SETS {
        bail!(
            "cannot rotate {} event sets in one run: the limit is {MAX_SETS}; name fewer events",
            sets.len()
        );
    }
    Ok(match in_one_run {
        true => vec![sets],
        false => sets.into_iter().map(|set| vec![set]).collect(),
    })
}

/// Whether the counts of groups that share the processor's counters fit into a record, with the time that each group was counted
/// and the time of all.
fn check_times(groups: &[Vec<String>]) -> Result<()> {
    let of_hardware = groups.iter().filter(|g| g.iter().any(|e| is_hardware(e)));
    let times = of_hardware.count() + 1;
    let events = groups.iter().map(Vec::len).sum::<usize>();
    if groups.len() > 1 && events + times > MAX_COUNTERS {
        bail!(
            "cannot multiplex {events} events and the {times} times that scale their counts in one run: the limit is \
                 {MAX_COUNTERS} numbers; name fewer events"
        );
    }
    Ok(())
}
