//! A profile against what its first run really had, where all events of that run are known.

use ompfuse_fuse::combine::rows_by_key;
use ompfuse_fuse::{Combined, EventColumn, Profile, XuTable};
use serde::Serialize;

/// How far a profile's counts are from the true ones.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TruthError {
    /// Sum of |count - true count| / sum of the true counts, over the events that don't come from the first run.
    pub hidden_error: f64,
    /// The same for each of these events.
    pub events: Vec<EventError>,
    /// XUs of the profile whose label (in its first run) the complete run has once.
    pub xus: usize,
}

/// One event's error.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EventError {
    /// Its name.
    pub event: String,
    /// Sum of |count - true count| / sum of the true counts; `None` if it never happened.
    pub error: Option<f64>,
}

/// Whether a profile's labels are what its runs have in common, and not those of its first run's XUs.
pub fn has_common_labels(profile: &Profile) -> bool {
    let matching = profile.summary.matching.as_ref();
    matching.is_some_and(|m| m.strategy.starts_with("bc"))
}

/// For each XU of a profile its row in the table that was its first input; `None` if it can't be that table.
pub fn rows_in_first(profile: &Profile, first: &XuTable) -> Option<Vec<u32>> {
    let column = profile.origins.iter().position(|&run| run == 0)?;
    let rows = profile.sources.as_ref()?.get(column)?;
    let is_same = |(at, &row): (usize, &u32)| {
        let (xus, row) = (&profile.xus, row as usize);
        let begins = |xus: &XuTable, row: usize| Some((*xus.t0_ns.get(row)?, xus.thread[row]));
        begins(first, row) == begins(xus, at)
    };
    rows.iter().enumerate().all(is_same).then(|| rows.clone())
}

/// Compares a profile with a complete recording of its first run. XUs are found by their labels: the profile's, or those of its
/// first input where they are others ([`has_common_labels`]), with each XU's row there ([`rows_in_first`]). `None` if there is
/// nothing to compare: no XU in common, or no event that both have and that comes from a later run.
pub fn truth_error(
    profile: &Profile,
    first: Option<(&XuTable, &[u32])>,
    complete: &XuTable,
) -> Option<TruthError> {
    let rows = rows_by_key(complete);
    let key = |row: usize| match first {
        Some((first, of_first)) => first.key(of_first[row] as usize),
        None => profile.xus.key(row),
    };
    let pairs: Vec<(usize, usize)> = (0..profile.xus.len())
        .filter_map(|row| Some((row, (*rows.get(&key(row)?)?)?)))
        .collect();
    let (mut error, mut sum, mut events) = (0.0, 0.0, vec![]);
    for (column, _) in profile
        .xus
        .events
        .iter()
        .zip(&profile.origins)
        .filter(|(_, run)| **run > 0)
    {
        let Some(truth) = complete.event(&column.name) else {
            continue;
        };
        let (mut difference, mut total) = (0.0, 0.0);
        for &(row, of_truth) in &pairs {
            if let (Some(found), Some(hidden)) = (column.get(row), truth.get(of_truth)) {
                difference += found.abs_diff(hidden) as f64;
                total += hidden as f64;
            }
        }
        error += difference;
        sum += total;
        events.push(EventError {
            event: column.name.clone(),
            error: (total > 0.0).then(|| difference / total),
        });
    }
    (!pairs.is_empty() && !events.is_empty()).then(|| TruthError {
        hidden_error: error / f64::max(sum, 1.0),
        events,
        xus: pairs.len(),
    })
}

/// The error against what the first run really had: over all counts, and per event. Of the events in `known`, and those that
/// come from the first run, nothing is hidden.
pub fn hidden_error(combined: &Combined, first: &XuTable, known: &[&String]) -> (f64, f64) {
    let (mut error, mut sum, mut by_event, mut events) = (0.0, 0.0, 0.0, 0usize);
    for (column, _) in combined
        .table
        .events
        .iter()
        .zip(&combined.origins)
        .filter(|(column, origin)| **origin > 0 && !known.contains(&&column.name))
    {
        let (difference, total) = difference(column, combined, first);
        error += difference;
        sum += total;
        if total > 0.0 {
            by_event += difference / total;
            events += 1;
        }
    }
    (error / sum.max(1.0), by_event / events.max(1) as f64)
}

/// The sum of |count - true count| of an event, and of the true counts.
fn difference(column: &EventColumn, combined: &Combined, first: &XuTable) -> (f64, f64) {
    let (mut difference, mut total) = (0.0, 0.0);
    if let Some(truth) = first.event(&column.name) {
        for (row, &source) in combined.sources[0].iter().enumerate() {
            if let (Some(found), Some(hidden)) = (column.get(row), truth.get(source as usize)) {
                difference += found.abs_diff(hidden) as f64;
                total += hidden as f64;
            }
        }
    }
    (difference, total)
}

/// The error of each event, averaged over all that happened at all: what the first run counted itself has none.
pub(super) fn error_by_event(combined: &Combined, first: &XuTable) -> f64 {
    let of = |column| difference(column, combined, first);
    let errors = combined.table.events.iter().map(of);
    let shares: Vec<f64> = errors
        .filter(|e| e.1 > 0.0)
        .map(|(e, sum)| e / sum)
        .collect();
    shares.iter().sum::<f64>() / shares.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use ompfuse_fuse::{Combiner, Relax, Strategy};

    #[test]
    fn the_truth_is_found_by_label() {
        let table = |csv: &str| XuTable::from_csv(csv.as_bytes()).unwrap();
        let head = "type,label,thread,t0_ns,t1_ns,";
        let a = table(&format!("{head}A\n1,0.1,0,0,1,5\n1,0.2,0,0,1,6\n"));
        let b = table(&format!("{head}B,C\n1,0.2,0,0,1,20,0\n1,0.1,0,0,1,10,0\n"));
        let mut combiner = Combiner::new(Strategy::Lgl);
        combiner.add(Profile::of_table("a", a.clone()));
        combiner.add(Profile::of_table("b", b));
        let profile = combiner.finish().unwrap().unwrap();
        let complete = table(&format!(
            "{head}A,B,C\n1,0.2,0,0,1,6,30,0\n1,0.1,0,0,1,5,10,0\n"
        ));
        let found = truth_error(&profile, None, &complete).unwrap();
        assert_eq!(
            (found.hidden_error, found.xus, found.events.len()),
            (0.25, 2, 2)
        );
        assert_eq!(
            (found.events[0].error, found.events[1].error),
            (Some(0.25), None)
        );
        assert_eq!(truth_error(&profile, None, &a), None);
    }

    #[test]
    fn where_labels_are_common_ones_those_of_the_first_run_count() {
        let table = |csv: &str| XuTable::from_csv(csv.as_bytes()).unwrap();
        let head = "type,label,thread,t0_ns,t1_ns,";
        // By behaviour the first run's XUs have each other's counts of B.
        let a = table(&format!("{head}A\n1,0.1,0,0,1,5\n1,0.1.1,0,1,2,600\n"));
        let b = table(&format!(
            "{head}A,B\n1,0.1,0,0,1,600,20\n1,0.1.1,0,1,2,5,10\n"
        ));
        let mut combiner = Combiner::new(Strategy::Bc(Relax::Halve)).with_sources();
        combiner.add(Profile::of_table("a", a.clone()));
        combiner.add(Profile::of_table("b", b));
        let profile = combiner.finish().unwrap().unwrap();
        assert!(has_common_labels(&profile));
        let rows = rows_in_first(&profile, &a).unwrap();
        let complete = table(&format!(
            "{head}A,B\n1,0.1.1,0,0,1,600,20\n1,0.1,0,0,1,5,10\n"
        ));
        let found = truth_error(&profile, Some((&a, &rows)), &complete).unwrap();
        assert_eq!((found.hidden_error, found.xus), (0.0, 2));
        let by_own = truth_error(&profile, None, &complete);
        assert_ne!(by_own.map(|e| (e.hidden_error, e.xus)), Some((0.0, 2)));
        let mut other = a;
        other.t0_ns[0] = 7;
        assert_eq!(rows_in_first(&profile, &other), None);
    }
}
