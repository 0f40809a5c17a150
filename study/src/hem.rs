//! Hardware multiplexing: groups of events take turns on the counters, recorded as such or simulated.
//!
//! In the simulation each thread's time is cut into slices; in a slice one group counts. What an XU did is taken to be spread evenly over its
//! time, which is kind to multiplexing. Within an XU that is longer than a whole turn the scaled counts are exact but for rounding. An XU
//! that never saw a group gets the interpolation of its neighbours in time on its thread, as a recorder that reads scaled counts would have
//! to guess.

use ompfuse_fuse::{Combined, EventColumn, XuTable};

/// The complete run as multiplexing would have shown it, with `slots` events at a time and a slice of `period_ns`.
pub fn multiplexed(complete: &XuTable, slots: usize, period_ns: u64) -> Combined {
    let groups = complete.events.len().div_ceil(slots.max(1)).max(1);
    let rows = complete.len();
    let order = by_thread_and_time(complete);
    let events = complete
        .events
        .iter()
        .enumerate()
        .map(|(at, event)| {
            column(
                complete,
                event,
                at / slots.max(1),
                groups,
                period_ns,
                &order,
            )
        })
        .collect();
    Combined {
        table: XuTable {
            events,
            ..complete.without_events()
        },
        // None of the counts is the first run's own, though it is the only one.
        origins: vec![1; complete.events.len()],
        sources: vec![(0..rows as u32).collect()],
        column_sources: None,
        unmatched: vec![],
    }
}

/// A table of scaled counts with those interpolated that are missing, and how many these are. `is_scaled`: by an event's name. What a
/// thread never saw of an event stays missing.
pub fn interpolated(mut table: XuTable, is_scaled: &dyn Fn(&str) -> bool) -> (XuTable, usize) {
    let order = by_thread_and_time(&table);
    let mut columns = std::mem::take(&mut table.events);
    let mut filled = 0;
    for column in columns.iter_mut().filter(|c| is_scaled(&c.name)) {
        let Some(present) = column.present.take() else {
            continue;
        };
        let guessed = interpolate(&mut column.values, &present, &table, &order);
        let mut present = present;
        filled += guessed.len();
        guessed.into_iter().for_each(|row| present[row] = true);
        column.present = present.contains(&false).then_some(present);
    }
    table.events = columns;
    (table, filled)
}

/// The rows, those of a thread in the order of their begin.
fn by_thread_and_time(table: &XuTable) -> Vec<u32> {
    let mut order: Vec<u32> = (0..table.len() as u32).collect();
    order.sort_by_key(|&row| {
        let r = row as usize;
        (table.process[r], table.thread[r], table.t0_ns[r], row)
    });
    order
}

/// How much of an interval a group counts.
fn enabled(t0: i64, t1: i64, group: usize, groups: usize, period: i64) -> i64 {
    // In whole turns a group has a slice each; the rest is looked at slice by slice.
    let turn = period * groups as i64;
    let until = |t: i64| {
        let (whole, rest) = (t.div_euclid(turn), t.rem_euclid(turn));
        whole * period + (rest - group as i64 * period).clamp(0, period)
    };
    until(t1) - until(t0)
}

fn column(
    complete: &XuTable,
    event: &EventColumn,
    group: usize,
    groups: usize,
    period_ns: u64,
    order: &[u32],
) -> EventColumn {
    let mut values = vec![0; complete.len()];
    let mut is_seen = vec![false; complete.len()];
    for &row in order {
        let row = row as usize;
        let (t0, t1) = (complete.t0_ns[row], complete.t1_ns[row]);
        let enabled = enabled(t0, t1, group, groups, period_ns.max(1) as i64);
        if enabled > 0 {
            let share = enabled as f64 / (t1 - t0) as f64;
            let counted = (event.values[row] as f64 * share).round();
            values[row] = (counted / share).round() as u64;
            is_seen[row] = true;
        }
    }
    interpolate(&mut values, &is_seen, complete, order);
    EventColumn {
        name: event.name.clone(),
        values,
        present: event.present.clone(),
    }
}

/// Gives the rows that are not seen what lies between their neighbours in time on their thread. Returns these rows, without those of
/// threads that have seen nothing.
fn interpolate(values: &mut [u64], is_seen: &[bool], table: &XuTable, order: &[u32]) -> Vec<usize> {
    let mut guessed = vec![];
    let thread = |row: u32| (table.process[row as usize], table.thread[row as usize]);
    for thread in order.chunk_by(|&a, &b| thread(a) == thread(b)) {
        let mut last: Option<usize> = None;
        let mut at = 0;
        while at < thread.len() {
            if is_seen[thread[at] as usize] {
                last = Some(at);
                at += 1;
                continue;
            }
            let next = (at..thread.len()).find(|&n| is_seen[thread[n] as usize]);
            let end = next.unwrap_or(thread.len());
            for between in at..end {
                let of = |n: usize| values[thread[n] as usize] as f64;
                let time = |n: usize| table.t0_ns[thread[n] as usize] as f64;
                let guess = match (last, next) {
                    (Some(a), Some(b)) if time(b) > time(a) => {
                        of(a) + (of(b) - of(a)) * (time(between) - time(a)) / (time(b) - time(a))
                    }
                    (Some(one), _) | (None, Some(one)) => of(one),
                    (None, None) => continue,
                };
                let row = thread[between] as usize;
                values[row] = guess.max(0.0).round() as u64;
                guessed.push(row);
            }
            at = end;
        }
    }
    guessed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_of_a_turn() {
        // Three groups, slices of 10: group 1 counts from 10 to 20, 40 to 50, ...
        assert_eq!(enabled(0, 30, 1, 3, 10), 10);
        assert_eq!(enabled(12, 15, 1, 3, 10), 3);
        assert_eq!(enabled(15, 45, 1, 3, 10), 10);
        assert_eq!(enabled(20, 40, 1, 3, 10), 0);
        assert_eq!(enabled(0, 3000, 2, 3, 10), 1000);
    }

    #[test]
    fn what_was_seen_is_scaled_and_the_rest_is_interpolated() {
        let csv = "type,label,thread,t0_ns,t1_ns,A,B\n1,0.1,0,0,20,100,7\n1,0.2,0,20,30,50,9\n1,0.3,0,30,40,60,30\n1,0.4,1,0,10,8,9\n";
        let run = XuTable::from_csv(csv.as_bytes()).unwrap();
        let shown = multiplexed(&run, 1, 10);
        // A counts from 0 to 10 and 20 to 30, B in between.
        assert_eq!(shown.table.events[0].values, [100, 50, 50, 8]);
        // Half of 7 is rounded to 4; between 8 at 0 and 30 at 30 lies 22.67 at 20; a thread that never saw it has nothing.
        assert_eq!(shown.table.events[1].values, [8, 23, 30, 0]);
    }

    #[test]
    fn what_is_missing_of_scaled_counts_lies_between_its_neighbours() {
        let csv = "type,label,thread,t0_ns,t1_ns,A,B\n1,0.1,0,0,20,10,\n1,0.2,0,20,30,,\n1,0.3,0,40,50,30,\n1,0.4,1,0,10,,9\n";
        let run = XuTable::from_csv(csv.as_bytes()).unwrap();
        let (shown, filled) = interpolated(run.clone(), &|name| name == "A");
        let all = |c: &EventColumn| (0..4).map(|row| c.get(row)).collect::<Vec<_>>();
        assert_eq!(all(&shown.events[0]), [Some(10), Some(20), Some(30), None]);
        assert_eq!((filled, &shown.events[1]), (1, &run.events[1]));
    }
}
