//! What every made-up run is held to: read in parts it is the same run.

use crate::run::{Chunks, InParts, Run, RunFiles, RunReader};
use crate::summary::{ParallelStat, Summary, ThreadColumns};
use crate::table::XuTable;
use ompfuse_format::Construct;
use ompfuse_progress::Progress;
use std::collections::BTreeMap;

/// Everything about each XU beside its position.
fn rows(run: &Run) -> Vec<String> {
    let xus = &run.xus;
    let row = |row: usize| format!("{} {:?}", unit(xus, row), run.xu_set[row]);
    (0..xus.len()).map(row).collect()
}

fn unit(xus: &XuTable, row: usize) -> String {
    let counts: Vec<_> = xus.events.iter().map(|e| (&e.name, e.get(row))).collect();
    format!(
        "{:?} {:?} {:?} {counts:?}",
        (
            xus.label_text(row, usize::MAX),
            xus.label_hash(row),
            xus.site[row]
        ),
        (
            xus.t0_ns[row],
            xus.t1_ns[row],
            xus.own_ns[row],
            xus.thread[row],
            xus.cpu[row]
        ),
        (
            xus.construct[row],
            xus.process[row],
            xus.parts[row],
            xus.first[row],
            xus.iterations[row]
        ),
    )
}

fn streamed(files: &RunFiles<'_>) -> Option<(Summary, InParts)> {
    Summary::streamed("r", files, Progress::default())
}

/// Pieces of any size have all units, once each.
fn chunks_agree(files: &RunFiles<'_>, in_parts: &InParts, run: &Run) {
    let in_order = |xus: &XuTable| {
        let mut rows: Vec<String> = (0..xus.len()).map(|row| unit(xus, row)).collect();
        rows.sort();
        rows
    };
    let whole = in_order(&run.xus);
    for size in [1, 3, 1 << 20] {
        let mut chunks = Chunks::new(files, in_parts, Progress::default());
        let mut all = vec![];
        while let Some(piece) = chunks.read(size) {
            all.extend(in_order(&piece));
        }
        all.sort();
        assert_eq!(all, whole, "pieces of {size}");
        assert_eq!(chunks.left(), 0);
    }
}

/// Reads a run in parts of several sizes, and place by place.
pub(super) fn read_all(files: &RunFiles<'_>) {
    let mut reader = RunReader::new(files);
    for memory in [0, 20_000, u64::MAX] {
        Summary::of_parts("r", &mut reader, memory, Progress::default());
    }
    for place in reader.places() {
        reader.read(&|site, construct| site == place.site && construct.is_xu());
    }
    streamed(files);
}

/// By place, kind and thread: intervals, own time, wall time and extent.
type Flat = BTreeMap<(Option<u32>, Construct, u32), [u64; 4]>;

fn add(flat: &mut Flat, site: Option<u32>, construct: Construct, threads: &ThreadColumns) {
    for (row, &thread) in threads.thread.iter().enumerate() {
        let columns = [
            &threads.count,
            &threads.own_ns,
            &threads.wall_ns,
            &threads.extent,
        ];
        let sums = flat.entry((site, construct, thread)).or_default();
        for (sum, column) in sums.iter_mut().zip(columns) {
            *sum = sum.wrapping_add(column[row]);
        }
    }
}

/// Over all paths there is as much as over all places.
fn paths_agree(summary: &Summary) {
    let (mut by_place, mut by_path) = (Flat::new(), Flat::new());
    let mut instances: BTreeMap<_, i64> = BTreeMap::new();
    for stat in &summary.regions {
        let construct = stat.construct.expect("of a run");
        add(&mut by_place, stat.site, construct, &stat.threads);
        *instances.entry((stat.site, construct)).or_default() += stat.instances as i64;
    }
    for (at, path) in summary.paths.iter().enumerate() {
        assert!(path.parent.is_none_or(|parent| (parent as usize) < at));
        for kind in &path.kinds {
            add(&mut by_path, path.site, kind.construct, &kind.threads);
            *instances.entry((path.site, kind.construct)).or_default() -= kind.instances as i64;
        }
    }
    assert_eq!(by_path, by_place);
    assert!(instances.values().all(|&n| n == 0), "{instances:?}");
    let wall = |stats: &mut dyn Iterator<Item = &ParallelStat>| -> (u64, u64, u64) {
        stats.fold((0, 0, 0), |(wall, waits, count), s| {
            let waited: u64 = s.workers.ns.iter().sum();
            (wall + s.wall_ns, waits + waited, count + s.executions)
        })
    };
    let on_paths = wall(&mut summary.paths.iter().filter_map(|p| p.executions.as_ref()));
    assert_eq!(on_paths, wall(&mut summary.parallel.iter()));
}

/// # Panics
/// If `run`, which is all of it, isn't what its parts make.
pub(super) fn agree(files: &RunFiles<'_>, run: &Run) {
    let mut reader = RunReader::new(files);
    let whole = Summary::of_run("r", run);
    super::live::agrees(files, run, &whole);
    paths_agree(&whole);
    for memory in [0, 20_000, u64::MAX] {
        let parts = Summary::of_parts("r", &mut reader, memory, Progress::default());
        assert_eq!(parts, whole, "parts of {memory} bytes");
    }
    let (summary, in_parts) = streamed(files).expect("in order of time");
    assert_eq!(summary, whole);
    chunks_agree(files, &in_parts, run);
    let mut all: Vec<(u32, String)> = vec![];
    for place in reader.places() {
        let part = reader.read(&|site, construct| site == place.site && construct.is_xu());
        all.extend(part.positions.into_iter().zip(rows(&part.run)));
    }
    all.sort();
    let whole: Vec<(u32, String)> = (0..).zip(rows(run)).collect();
    assert_eq!(all, whole);
}
