//! Sums over time of a run whose records come in no order of time, as where recording was paused: from its tables, whose memory grows
//! with the run.

use super::{Around, AroundGrowth, Grower, Growth, GrowthBy, GrowthError, OwnGrowth};
use crate::run::{NONE, Run};
use crate::summary::parallel::arounds;
use ompfuse_format::Construct;
use std::collections::HashMap;

/// Something that a thread has executed.
struct Row {
    account: u32,
    site: u32,
    construct: Construct,
    span: (i64, i64),
    own_ns: u64,
    enter_ns: Option<u64>,
}

/// A run's sums over time.
pub(in super::super) fn of_run(run: &Run, by: GrowthBy<'_>) -> Result<Growth, GrowthError> {
    let mut grower = match by {
        GrowthBy::Time(width) => Grower::new(Some(width), run.threads.len()),
        GrowthBy::Instances(_) if run.processes.len() > 1 => return Err(GrowthError::Processes),
        GrowthBy::Instances(_) => Grower::new(None, run.threads.len()),
    };
    let mut ends: HashMap<u32, bool> = HashMap::new();
    for row in rows(run) {
        let of_thread = (row.construct == Construct::Program).then_some(row.account);
        let key = (row.site, row.construct, of_thread);
        let own = (row.own_ns, row.enter_ns);
        grower.interval(row.account as usize, key, row.span, own);
        if let GrowthBy::Instances(wanted) = by
            && row.construct.is_fork()
            && *ends
                .entry(row.site)
                .or_insert_with(|| is_meant(run, row.site, wanted))
        {
            grower.instance(row.span.1);
        }
    }
    if grower.instances() == Some(0) {
        return Err(GrowthError::NoInstance);
    }
    arounds(run, |around: Around| grower.around(around));
    let site = |site: u32| (site != NONE).then_some(site);
    let own = grower
        .own()
        .map(|((at, construct, account), ns)| OwnGrowth {
            site: site(at),
            construct,
            account,
            ns: ns.to_vec(),
        });
    let around = grower.arounds().map(|((at, kind), ns)| AroundGrowth {
        site: site(at),
        kind,
        ns: ns.to_vec(),
    });
    let mut own: Vec<OwnGrowth> = own.collect();
    own.sort_by_key(|o| (o.site, o.construct, o.account));
    let mut around: Vec<AroundGrowth> = around.collect();
    around.sort_by_key(|a| (a.site, a.kind));
    let last = grower.span().map_or(0, |(_, last)| last);
    Ok(Growth {
        edges: grower.edges(last),
        each: grower.each(),
        folded: grower.folded,
        own,
        around,
    })
}

/// Everything that was executed, in the order of its ends; of what ended at the same time, what began last comes first.
fn rows(run: &Run) -> Vec<Row> {
    let accounts: HashMap<(u16, u32), u32> = (run.threads.iter().zip(0..))
        .map(|(t, at)| ((t.process, t.index), at))
        .collect();
    let (xus, others) = (&run.xus, &run.intervals);
    let units = (0..xus.len()).filter_map(|at| {
        Some(Row {
            account: *accounts.get(&(xus.process[at], xus.thread[at]))?,
            site: xus.site[at],
            construct: xus.construct[at]?,
            span: (xus.t0_ns[at], xus.t1_ns[at]),
            own_ns: xus.own_ns[at],
            enter_ns: None,
        })
    });
    let intervals = (0..others.len()).filter_map(|at| {
        Some(Row {
            account: *accounts.get(&(others.process[at], others.thread[at]))?,
            site: others.site[at],
            construct: others.construct[at],
            span: (others.t0_ns[at], others.t1_ns[at]),
            own_ns: others.own_ns[at],
            enter_ns: (others.construct[at].is_exclusive()).then_some(others.extent[at]),
        })
    });
    let mut rows: Vec<Row> = units.chain(intervals).collect();
    rows.sort_by_key(|row| (row.span.1, std::cmp::Reverse(row.span.0)));
    rows
}

/// Whether a site of the run is meant.
fn is_meant(
    run: &Run,
    site: u32,
    wanted: &dyn Fn(&str, &ompfuse_format::site::SiteInfo) -> bool,
) -> bool {
    let Some(at) = run.sites.get(site as usize) else {
        return false;
    };
    let modules = run.header.modules.iter();
    let mut modules = modules.filter(|m| match &m.binary.build_id {
        Some(id) => *id == at.module,
        None => m.binary.path == at.module,
    });
    modules.any(|module| {
        let info = at.id.and_then(|id| module.sites.get(id as usize));
        info.is_some_and(|info| wanted(&module.binary.path, info))
    })
}
