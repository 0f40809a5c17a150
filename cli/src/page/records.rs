//! What the records of a run tell beside its report: how it goes on, its units, what each thread did.

use crate::load::over_time::{Ends, Grown, over_time};
use crate::{load, progress};
use anyhow::Result;
use ompfuse_account::Report;
use ompfuse_account::model::growth::GrowthReport;
use ompfuse_fuse::run::InParts;
use ompfuse_fuse::span;
use ompfuse_fuse::{Summary, XuTable};
use ompfuse_progress::Progress;
use ompfuse_report::units::{Gather, Units};
use ompfuse_report::view::html::timeline::{Drawn, draw};
use std::path::Path;
use std::sync::mpsc::channel;
use std::thread::scope;

/// Intervals that a run is divided into where nobody has said how.
const INTERVALS: f64 = 60.0;

/// What the sums take of the time where all is read at once.
const OF_SUMS: f64 = 0.5;

/// What a page shows beside the report. Nothing of it is known of sums, and a profile alone has only units.
#[derive(Debug, Default)]
pub(crate) struct Records {
    pub(super) growth: Option<GrowthReport>,
    pub(super) units: Option<Units>,
    pub(super) drawn: Option<Drawn>,
}

impl Records {
    /// Reads a path that is one run with records: these are read for the sums, and beside that for the threads. `None`: it is something
    /// else.
    pub(crate) fn with_summary(input: &Path) -> Result<Option<(Summary, Records)>> {
        let Some((run, seconds)) = load::one_with_records(input)? else {
            return Ok(None);
        };
        let bar = progress::whole("reading");
        let (sums, threads) = (
            bar.progress().part(OF_SUMS),
            bar.progress().part(1.0 - OF_SUMS),
        );
        let (tell, told) = channel();
        scope(|scope| {
            let tell = tell; // whoever listens hears of every end of this
            let in_parts = move || told.recv().ok().flatten();
            let drawing = scope.spawn(|| drawn(&run, Some(in_parts), threads));
            let Ok(mut grown) = grown(&run, seconds, sums) else {
                return Ok(None); // whoever reads it otherwise says why
            };
            // If nobody listens, the threads could not be read, which is told below.
            let _ = tell.send(grown.in_parts.take());
            load::analyse_run(&run, &mut grown.summary)?;
            let drawn = drawing.join().expect(crate::NO_PANIC)?;
            let (drawn, units) = drawn.unzip();
            let records = Records {
                growth: Some(grown.growth),
                units: units.filter(|units| units.count() > 0),
                drawn,
            };
            Ok(Some((grown.summary, records)))
        })
    }

    /// Reads what there is beside a report. `growth`: how its first run goes on, if that was read already.
    pub(super) fn beside(
        report: &Report,
        input: &Path,
        growth: Option<GrowthReport>,
    ) -> Result<Records> {
        if report.runs.iter().any(|r| r.sums_only) {
            return Ok(Records::default());
        }
        let mut units = of_profile(report, input)?;
        let Some(run) = load::first_run(input) else {
            return Ok(Records {
                units,
                ..Records::default()
            });
        };
        let growth = growth.or_else(|| {
            let bar = progress::whole("reading");
            let seconds = report.lifetime_s.or(report.duration_s)?;
            Some(grown(&run, seconds, bar.progress()).ok()?.growth)
        });
        let bar = progress::whole("drawing the timeline");
        let is_wanted = units.is_none() && report.xus > 0;
        let in_parts = is_wanted.then(|| load::in_parts(&run)).transpose()?;
        let drawn = drawn(&run, in_parts.map(|known| || known), bar.progress())?;
        let (drawn, of_run) = drawn.unzip();
        if is_wanted {
            units = of_run;
        }
        Ok(Records {
            growth,
            units,
            drawn,
        })
    }
}

/// The execution units that a report is of; `None`: there are sums only.
pub(crate) fn units(report: &Report, input: &Path) -> Result<Option<Units>> {
    if let Some(units) = of_profile(report, input)? {
        return Ok(Some(units));
    }
    let run = load::first_run(input).filter(|_| has_units(report));
    let Some(run) = run else {
        return Ok(None);
    };
    let bar = progress::whole("reading units");
    let gather = Gather::new(load::in_parts(&run)?.as_ref());
    let units = load::timeline(&run, bar.progress(), |timeline, progress| {
        Ok(Units::of_run(timeline, &gather, progress))
    })?;
    Ok(Some(units))
}

fn has_units(report: &Report) -> bool {
    report.xus > 0 && !report.runs.iter().any(|r| r.sums_only)
}

/// Those of a profile; `None`: it is a run.
fn of_profile(report: &Report, input: &Path) -> Result<Option<Units>> {
    if !has_units(report) {
        return Ok(None);
    }
    let bar = progress::whole("reading units");
    let mut units = Units::default();
    let add = &mut |table: &XuTable| units.add(table);
    let is_profile = load::units_of_profile(input, add)?;
    drop(bar);
    Ok(is_profile.then_some(units))
}

/// What a run's threads did, and their units. `in_parts`: tells which of these have several parts; `None`: units are not asked for.
fn drawn(
    run: &Path,
    in_parts: Option<impl FnOnce() -> Option<InParts>>,
    progress: Progress<'_>,
) -> Result<Option<(Drawn, Units)>> {
    load::timeline(run, progress, |timeline, progress| {
        let gather = in_parts.map(|in_parts| Gather::new(in_parts().as_ref()));
        let mut drawn = draw(timeline, gather.as_ref(), progress);
        if let Some((drawn, _)) = &mut drawn {
            let graphs = load::with_files(run, |files| Ok(span::drawn(files, &[])))?;
            drawn.set_paths(graphs.as_deref());
        }
        Ok(drawn)
    })
}

/// A run that takes so many seconds, and how it goes on.
fn grown(run: &Path, all_s: f64, progress: Progress<'_>) -> Result<Grown> {
    let ns = ((all_s / INTERVALS * 1e9) as u64).max(1);
    over_time(run, Ends::Time(ns), progress)
}
