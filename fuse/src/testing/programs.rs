//! Executions of made-up programs, complete: every event of every XU is known. For benchmarks, and for the comparison of
//! strategies where no machine counts so much at once.
//!
//! A program (a [`Shape`] and a seed) fixes the XUs, their labels and what depends on the executed code alone:
//! instructions, loads, branches. A run of it adds what depends on the schedule: XUs go to the thread that is free first,
//! caches are cold where a thread's last XU worked on other data or was of another type, and threads disturb each other
//! for a while. So counts of one XU go together, those of neighbours on a thread too, and the same label has other misses
//! and cycles in every run, as in measured runs.

mod shapes;

pub use shapes::Shape;

use crate::label::{LabelId, Labels};
use crate::table::{EventColumn, ProcessId, Site, XuTable};
use shapes::Unit;
use std::sync::Arc;

/// The events. The first nine depend on the executed code alone.
pub const EVENTS: [&str; 33] = [
    "INS", "LD", "SR", "BR", "BR_CN", "BR_TKN", "FP", "CALLS", "BYTES", "L1_DCM", "L1_LDM",
    "L1_STM", "L1_ICM", "L2_DCA", "L2_DCR", "L2_DCW", "L2_ICM", "L2_TCM", "L2_TCW", "L2_STM",
    "L3_TCA", "L3_DCR", "L3_DCW", "L3_TCM", "TLB_DM", "TLB_IM", "BR_MSP", "BR_PRC", "CYC", "REF",
    "STL_FE", "STL_BE", "PF",
];

const THREADS: usize = 8;

/// Random numbers (SplitMix64).
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to 1.
    pub(crate) fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Of a normal distribution, nearly: mean 0, deviation 1.
    pub(crate) fn normal(&mut self) -> f64 {
        let sum: f64 = (0..6).map(|_| self.share()).sum();
        (sum - 3.0) * std::f64::consts::SQRT_2
    }

    /// A factor around 1.
    pub(crate) fn factor(&mut self, deviation: f64) -> f64 {
        (deviation * self.normal()).exp()
    }
}

/// A thread in the course of a run.
#[derive(Debug, Clone)]
struct Worker {
    now: f64,
    place: f64,
    site: u32,
    /// How much others disturb it.
    pressure: f64,
}

/// Run number `run` of the program that `shape` and `seed` make, of about `xus` XUs.
pub fn execute(shape: Shape, xus: usize, seed: u64, run: u64) -> XuTable {
    let mut random = Random::new(seed.wrapping_mul(1009).wrapping_add(run + 1));
    let units = shapes::units(shape, xus, seed, &mut random);
    let mut labels = Labels::default();
    let sites = (0..units.iter().map(|u| u.site + 1).max().unwrap_or(0))
        .map(|s| Site::named(s.to_string()))
        .collect();
    let mut table = XuTable {
        sites: Arc::new(sites),
        processes: vec![ProcessId {
            pid: 0,
            mpi_rank: None,
            ordinal: 0,
        }],
        ..XuTable::default()
    };
    table.reserve(units.len());
    table.events = EVENTS
        .iter()
        .map(|name| EventColumn {
            name: (*name).to_owned(),
            values: Vec::with_capacity(units.len()),
            present: None,
        })
        .collect();
    let mut workers = vec![
        Worker {
            now: 0.0,
            place: 0.0,
            site: u32::MAX,
            pressure: 0.0,
        };
        THREADS
    ];
    for (at, unit) in units.into_iter().enumerate() {
        let thread = match shape.is_static() {
            true => at % THREADS,
            false => (0..THREADS)
                .min_by(|&a, &b| workers[a].now.total_cmp(&workers[b].now))
                .unwrap_or(0),
        };
        let worker = &mut workers[thread];
        let begin = worker.now;
        let counts = count(&unit, worker, &mut random);
        for (column, count) in table.events.iter_mut().zip(counts) {
            column.values.push(count.max(0.0).round() as u64);
        }
        table.label.push(labels.push(LabelId::NONE, &unit.label));
        table.site.push(unit.site);
        table.thread.push(thread as u32);
        table.t0_ns.push(begin as i64);
        table.t1_ns.push(worker.now as i64);
        table.own_ns.push((worker.now - begin) as u64);
        worker.now += 200.0 + 300.0 * random.share();
    }
    table.fill_unrecorded(labels);
    table
}

/// What an XU costs where and when it is executed, in the order of [`EVENTS`].
fn count(unit: &Unit, worker: &mut Worker, random: &mut Random) -> [f64; 33] {
    let logistic = |x: f64| 1.0 / (1.0 + (-x).exp());
    let cold = 1.0 - (-8.0 * (unit.place - worker.place).abs()).exp();
    let is_other_code = worker.site != unit.site;
    worker.pressure = 0.97 * worker.pressure + 0.3 * random.normal();
    worker.place = unit.place;
    worker.site = unit.site;
    let pressure = logistic(worker.pressure);

    let ins = unit.work;
    let (ld, sr) = (
        (ins * unit.memory).round(),
        (ins * unit.memory * 0.4).round(),
    );
    let br = (ins * unit.branches).round();
    let (cn, fp) = ((br * 0.9).round(), (ins * unit.float).round());
    let taken = (br * (0.4 + unit.surprise)).round();
    let (calls, bytes) = ((br * 0.08).round(), 8.0 * (ld + sr));
    let code = if is_other_code { 1.0 } else { 0.08 };
    let icm = (4.0 + 90.0 * code) * random.factor(0.35);
    let l1 = unit.lines * (0.1 + 0.9 * cold) * (0.9 + 0.2 * pressure) * random.factor(0.08);
    let l1_store = l1 * (0.2 + 0.1 * unit.float) * random.factor(0.05);
    let l2 = l1 * (0.1 + 0.6 * pressure) * random.factor(0.1);
    let l2_code = icm * (0.05 + 0.3 * pressure) * random.factor(0.2);
    let l3 = l2 * (0.05 + 0.5 * pressure * cold) * random.factor(0.15);
    let tlb = 0.5 + l2 * 0.08 * (0.3 + cold) * random.factor(0.2);
    let missed = br * unit.surprise * random.factor(0.06) + 25.0 * code * random.factor(0.3);
    let back = 7.0 * l1 + 28.0 * l2 + 110.0 * l3 + 20.0 * tlb;
    let front = 9.0 * icm + 30.0 * l2_code + 14.0 * missed;
    let cycles = ins * (0.3 + 0.2 * unit.float) * random.factor(0.01) + back + front;
    let reference = cycles * (0.62 + 0.08 * pressure);
    worker.now += cycles / 3.0;
    let faults = if random.share() < 0.02 * cold {
        1.0 + unit.lines / 256.0
    } else {
        0.0
    };
    [
        ins + (20.0 * random.share()).floor(), // interrupts count too
        ld,
        sr,
        br,
        cn,
        taken,
        fp,
        calls,
        bytes,
        l1,
        l1 - l1_store,
        l1_store,
        icm,
        l1 * 1.05 * random.factor(0.02),
        (l1 - l1_store) * 1.04,
        l1_store * random.factor(0.1),
        l2_code,
        l2 + l2_code,
        l1_store * 0.9 * random.factor(0.15),
        l2 * 0.25 * random.factor(0.1),
        (l2 + l2_code) * 1.1 * random.factor(0.04),
        l2 * 0.8 * random.factor(0.04),
        l2 * 0.22 * random.factor(0.08),
        l3,
        tlb,
        icm * 0.02 * random.factor(0.3),
        missed,
        (br - missed).max(0.0),
        cycles,
        reference,
        front * random.factor(0.05),
        back * 0.7 * random.factor(0.03),
        faults,
    ]
}
