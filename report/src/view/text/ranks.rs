//! The section about the ranks of an MPI program.

use super::bars::bar;
use super::{Paint, Section, TextOptions, laid_out, titled};
use crate::view::table::{Column, wrap};
use crate::words::{self, kind, location, transfer};
use ompfuse_account::model::{Mpi, Region, Report};
use ompfuse_account::units::{percent, seconds};

/// Width of the bars that show work beside the rank with the most.
const BAR: usize = 10;
/// Ranks that are listed: those with the most work, and the one with the least.
const MOST: usize = 4;
/// Likewise, on request.
const MOST_ON_REQUEST: usize = 16;
/// Regions whose imbalances are listed.
const REGIONS: usize = 5;

/// Time by rank, and imbalance among ranks apart from that among threads.
pub(super) fn ranks(report: &Report, options: TextOptions) -> Option<String> {
    let paint = Paint { on: options.colour };
    let mpi = report.mpi.as_ref()?;
    let mut list: Vec<_> = mpi.ranks.iter().collect();
    let is_whole = options.show.has(Section::Ranks);
    let most_rows = if is_whole { MOST_ON_REQUEST } else { MOST };
    let left_out = list.len().saturating_sub(most_rows);
    if left_out > 0 {
        list.sort_by(|a, b| b.work_s.total_cmp(&a.work_s));
        let least = list.pop();
        list.truncate(most_rows - 1);
        list.extend(least);
    }
    let most = list.iter().map(|r| r.work_s).fold(0.0, f64::max);
    let rows = list
        .iter()
        .map(|r| {
            let share = if most > 0.0 { r.work_s / most } else { 0.0 };
            vec![
                r.rank.to_string(),
                r.threads.to_string(),
                seconds(r.wall_s),
                bar(share, 0.0, BAR),
                seconds(r.work_s),
                seconds(r.wait_s - r.mpi_s),
                seconds(r.mpi_s),
                (r.transfer.as_ref()).map_or_else(String::new, transfer::left),
                (r.transfer.as_ref()).map_or_else(String::new, transfer::came),
                seconds(r.runtime_s),
                seconds(r.serial_s),
                percent(r.imbalance),
            ]
        })
        .collect();
    let columns = [
        Column::right("rank"),
        Column::right("threads").leaves(2),
        Column::right("wall"),
        Column::left("").leaves(3),
        Column::right("work"),
        Column::right("wait"),
        Column::right("MPI"),
        Column::right("bytes out").leaves(4),
        Column::right("bytes in").leaves(5),
        Column::right("runtime"),
        Column::right("serial"),
        Column::right("imbal.").leaves(1),
    ];
    let of = match mpi.size {
        Some(size) if size as usize != mpi.ranks.len() => format!(" of {size}"),
        _ => String::new(),
    };
    let title = format!("{}{of} MPI ranks", mpi.ranks.len());
    let explanation = "serial: outside of regions and MPI; imbal.: of its threads";
    let mut text = titled(&title, explanation, options);
    text.push_str(&laid_out(&columns, rows, options));
    if left_out > 0 {
        text.push_str(&paint.dim(&format!("{left_out} more ranks lie between the last two\n")));
    }
    let line = format!(
        "imbalance of work among ranks {}, among the threads of a rank {}",
        percent(mpi.imbalance_among_ranks),
        percent(mpi.imbalance_among_threads)
    );
    text.push_str(&wrap(&line, options.width, "  "));
    if let Some(late) = late(mpi) {
        text.push_str(&wrap(&late, options.width, "  "));
    }
    for line in mpi.clocks.iter().flat_map(words::ranks::clocks) {
        text.push_str(&wrap(&line, options.width, "  "));
    }
    if mpi.serial_s + mpi.parallel_s > 0.0 {
        let line = format!(
            "MPI takes {} outside of parallel regions and {} inside, all ranks together",
            seconds(mpi.serial_s),
            seconds(mpi.parallel_s)
        );
        text.push_str(&wrap(&line, options.width, "  "));
    }
    if !is_whole {
        return Some(text);
    }
    text.push_str(&regions(report, options));
    Some(text + &super::transfers::transfers(report, options))
}

/// A rank with this share of the mean time in MPI, or less, is told.
const LATE: f64 = 0.8;

/// The rank that the others wait for, if there is one.
fn late(mpi: &Mpi) -> Option<String> {
    let sum: f64 = mpi.ranks.iter().map(|r| r.mpi_s).sum();
    let mean = sum / mpi.ranks.len() as f64;
    let least = mpi
        .ranks
        .iter()
        .min_by(|a, b| a.mpi_s.total_cmp(&b.mpi_s))?;
    (least.mpi_s < LATE * mean).then(|| {
        format!(
            "rank {} has the least time in MPI, {} beside a mean of {}: who comes late waits least",
            least.rank,
            seconds(least.mpi_s),
            seconds(mean)
        )
    })
}

/// The regions with the most work.
fn regions(report: &Report, options: TextOptions) -> String {
    let mut list: Vec<&Region> = report.regions.iter().filter(|r| r.work_s > 0.0).collect();
    list.sort_by(|a, b| b.work_s.total_cmp(&a.work_s));
    let row = |region: &&Region| {
        let ranks = region.ranks.as_ref()?;
        Some(vec![
            percent(ranks.imbalance_among_ranks),
            percent(ranks.imbalance_among_threads),
            region.id.to_string(),
            kind(region),
            location(region),
        ])
    };
    let rows: Vec<Vec<String>> = list.iter().filter_map(row).take(REGIONS).collect();
    if rows.is_empty() {
        return String::new();
    }
    let columns = [
        Column::right("among ranks"),
        Column::right("among threads"),
        Column::right("#"),
        Column::left("construct"),
        Column::left("location").keeps_place(14),
    ];
    laid_out(&columns, rows, options)
}
