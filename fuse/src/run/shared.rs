//! Events that took turns with others on the processor's counters (hardware multiplexing): each was counted part of the time, and
//! the records say how long. Its count is scaled by the quotient of the two times, as perf does.
//!
//! While rows are made such an event has its raw count in its column, and further columns for the times. Afterwards the
//! raw count and the times stand apart, for sums over regions, and the event's column has what they make.

use crate::table::EventColumn;
use ompfuse_format::run::EventStatus;
use std::num::NonZero;

/// What an event would have counted, had it been counted all the time; `None` if it never was.
pub(crate) fn scaled(value: u64, running: u64, enabled: u64) -> Option<u64> {
    if enabled == 0 || running >= enabled {
        return Some(value); // nothing was missed
    }
    let running = NonZero::new(u128::from(running))?;
    let exact = u128::from(value) * u128::from(enabled);
    let rounded = (exact + running.get() / 2) / running;
    Some(u64::try_from(rounded).unwrap_or(u64::MAX))
}

/// Columns of one event: its raw count, how long it was counted, how long it was to be.
pub(crate) const COLUMNS: usize = 3;

/// Names of all columns while rows are made: those of `counted`, then the two times of each shared event.
pub(super) fn with_times(counted: &[String], shared: &[usize]) -> Vec<String> {
    let times = shared.iter().flat_map(|&at| [&counted[at]; COLUMNS - 1]);
    counted.iter().chain(times).cloned().collect()
}

/// Counters of a set's events, for the columns of [`with_times`]. A set that counted a shared event all the time has no times.
pub(super) fn counters(
    counted: &[String],
    shared: &[usize],
    set: &[EventStatus],
) -> Vec<Option<usize>> {
    let status = |name: &String| set.iter().find(|e| e.name == *name && e.column.is_some());
    let events = counted.iter().map(|name| status(name)?.column);
    let times = shared.iter().flat_map(|&at| {
        let times = status(&counted[at]).and_then(|s| s.shared);
        [times.map(|t| t.running), times.map(|t| t.enabled)]
    });
    let known = |c: u32| Some(c as usize).filter(|&c| c < ompfuse_format::record::MAX_COUNTERS);
    events.chain(times).map(|c| c.and_then(known)).collect()
}

/// Scales the shared events' counts, row by row. Returns what they were made of: [`COLUMNS`] for each.
pub(super) fn scale(columns: &mut Vec<EventColumn>, shared: &[usize]) -> Vec<EventColumn> {
    let times = columns.split_off(columns.len() - (COLUMNS - 1) * shared.len());
    let mut times = times.into_iter();
    let mut raw = vec![];
    for &at in shared {
        let (Some(running), Some(enabled)) = (times.next(), times.next()) else {
            break; // never: there are two for each
        };
        let column = &mut columns[at];
        let rows = column.values.len();
        let mut made = EventColumn {
            name: column.name.clone(),
            values: Vec::with_capacity(rows),
            present: None,
        };
        for row in 0..rows {
            let times = running.get(row).zip(enabled.get(row));
            let count = column.get(row);
            made.push(
                row,
                match (count, times) {
                    (Some(count), Some((running, enabled))) => scaled(count, running, enabled),
                    _ => count, // with a set in which it had a counter of its own
                },
            );
        }
        raw.extend([std::mem::replace(column, made), running, enabled]);
    }
    raw
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_scaled_by_the_time_that_was_missed() {
        assert_eq!(scaled(10, 25, 100), Some(40));
        assert_eq!(scaled(7, 2, 3), Some(11)); // 10.5
        assert_eq!(scaled(7, 3, 3), Some(7));
        assert_eq!(scaled(0, 0, 5), None);
        assert_eq!(scaled(0, 0, 0), Some(0));
        assert_eq!(scaled(u64::MAX, 1, u64::MAX), Some(u64::MAX));
    }

    #[test]
    fn rows_without_times_keep_their_counts() {
        let counted = ["A", "B"].map(str::to_owned);
        let names = with_times(&counted, &[1]);
        assert_eq!(names, ["A", "B", "B", "B"]);
        let rows = [
            [Some(1), Some(6), Some(2), Some(4)],
            [Some(2), Some(0), Some(0), Some(4)],
            [Some(3), Some(5), None, None],
            [Some(4), None, None, None],
        ];
        let column = |(at, name): (usize, &String)| {
            let mut column = EventColumn {
                name: name.clone(),
                values: vec![],
                present: None,
            };
            (0..)
                .zip(&rows)
                .for_each(|(row, values)| column.push(row, values[at]));
            column
        };
        let mut columns: Vec<EventColumn> = names.iter().enumerate().map(column).collect();
        let raw = scale(&mut columns, &[1]);
        let all = |c: &EventColumn| (0..4).map(|row| c.get(row)).collect::<Vec<_>>();
        assert_eq!(columns.len(), 2);
        assert_eq!(all(&columns[1]), [Some(12), None, Some(5), None]);
        assert_eq!(all(&columns[0]), [1, 2, 3, 4].map(Some));
        assert_eq!(raw.len(), COLUMNS);
        assert_eq!(all(&raw[0]), [Some(6), Some(0), Some(5), None]);
    }
}
