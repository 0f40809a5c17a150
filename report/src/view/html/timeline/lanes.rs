//! Nested spans as a sequence: at each moment the innermost one counts.

use super::whats::{CLASSES, IDLE, Whats};
use super::{BINS, MOST, MOST_BINS};
use ompfuse_fuse::run::timeline::{Lane, Span, Step, Timeline};
use ompfuse_progress::Progress;
use rayon::prelude::*;

/// Who is told of a lane's stretches, in the order of time.
pub(super) trait Sink {
    /// A span begins. Gives what [`Sink::stretch`] is told of it.
    fn enter(&mut self) -> u32 {
        0
    }
    /// A stretch of the innermost span, from begin to end in nanoseconds since the run's begin.
    fn stretch(&mut self, whats: &mut Whats<'_>, what: u16, open: u32, begin: i64, end: i64);
    /// A span that had a stretch ends. `own_ns`: its exclusive time.
    fn leave(&mut self, _: &Timeline<'_>, _: &Lane, _: &Span<'_>, _open: u32, _own_ns: u64) {}
}

struct Open {
    what: u16,
    number: u32,
    /// The sum of its stretches.
    ns: u64,
    is_told: bool,
}

/// Tells of a lane's stretches. Units without length are told too.
pub(super) fn each(
    timeline: &Timeline<'_>,
    lane: usize,
    whats: &mut Whats<'_>,
    sink: &mut impl Sink,
) {
    let of = &timeline.lanes()[lane];
    let mut open: Vec<Open> = vec![];
    let mut since = i64::MIN;
    for step in timeline.steps(lane) {
        let (at, is_leave) = match &step {
            Step::Enter(span) => (span.begin_ns, false),
            Step::Leave(_, at) => (*at, true),
        };
        if let Some(top) = open.last_mut() {
            let span = match &step {
                Step::Leave(span, _) => Some(span),
                Step::Enter(_) => None,
            };
            let is_empty_unit = is_leave && !top.is_told && span.is_some_and(Span::is_unit);
            if at > since || is_empty_unit {
                top.ns += (at - since) as u64;
                top.is_told = true;
                sink.stretch(whats, top.what, top.number, since, at);
            }
        }
        since = at;
        match step {
            Step::Enter(span) => open.push(Open {
                what: whats.of(of, &span),
                number: sink.enter(),
                ns: 0,
                is_told: false,
            }),
            Step::Leave(span, _) => {
                if let Some(top) = open.pop()
                    && top.is_told
                {
                    let own = span.own_ns.unwrap_or(top.ns);
                    sink.leave(timeline, of, &span, top.number, own);
                }
            }
        }
    }
}

/// Nanoseconds by class.
pub(super) type LaneSums = [u64; CLASSES.len()];

/// What a first reading tells.
pub(super) struct Surveyed {
    pub(super) lanes: Vec<LaneSums>,
    /// Stretches that are drawn.
    pub(super) spans: u64,
    /// Execution units, or parts of them.
    pub(super) units: u64,
    /// Stretches by length: 64 steps for each power of two.
    lengths: Vec<u64>,
}

/// Steps of a power of two, as a power of two.
const BITS: u32 = 6;
const STEPS: u64 = 1 << BITS;

/// Where a length is counted. Each place has those from [`least`] of it on.
fn place(ns: u64) -> usize {
    if ns < STEPS {
        return ns as usize;
    }
    let power = ns.ilog2();
    let step = (ns >> (power - BITS)) & (STEPS - 1);
    (u64::from(power - BITS + 1) * STEPS + step) as usize
}

fn least(place: usize) -> u64 {
    let (row, step) = (place as u64 / STEPS, place as u64 % STEPS);
    match row {
        0 => step,
        row => (STEPS + step) << (row - 1),
    }
}

impl Surveyed {
    /// Adds what was read of the lanes behind.
    fn absorb(&mut self, behind: Surveyed) {
        self.lanes.extend(behind.lanes);
        self.spans += behind.spans;
        self.units += behind.units;
        for (sum, more) in self.lengths.iter_mut().zip(behind.lengths) {
            *sum += more;
        }
    }

    /// Stretches that are shorter. `ns`: one of [`least`].
    pub(super) fn shorter(&self, ns: u64) -> u64 {
        self.lengths[..place(ns)].iter().sum()
    }
}

impl Default for Surveyed {
    fn default() -> Surveyed {
        Surveyed {
            lanes: vec![],
            spans: 0,
            units: 0,
            lengths: vec![0; place(u64::MAX) + 1],
        }
    }
}

impl Sink for Surveyed {
    fn stretch(&mut self, whats: &mut Whats<'_>, what: u16, _: u32, begin: i64, end: i64) {
        let ns = (end - begin) as u64;
        let class = whats.class_of(what);
        whats.took(what, ns);
        if let Some(sums) = self.lanes.last_mut() {
            sums[class as usize] += ns;
        }
        if class != IDLE {
            self.spans += 1;
            self.lengths[place(ns)] += 1;
        }
    }

    fn leave(&mut self, _: &Timeline<'_>, _: &Lane, span: &Span<'_>, _: u32, _: u64) {
        self.units += u64::from(span.is_unit());
    }
}

/// Reads all lanes.
pub(super) fn survey(
    timeline: &Timeline<'_>,
    whats: &mut Whats<'_>,
    progress: Progress<'_>,
) -> Surveyed {
    let none = || (Surveyed::default(), whats.clone());
    let read = |lane| {
        let (mut surveyed, mut whats) = none();
        surveyed.lanes.push(LaneSums::default());
        each(timeline, lane, &mut whats, &mut surveyed);
        let intervals = timeline.lanes()[lane].intervals as usize;
        progress.steps(intervals, timeline.intervals() as usize);
        progress.release();
        (surveyed, whats)
    };
    let lanes = (0..timeline.lanes().len()).into_par_iter().map(read);
    let (surveyed, met) = lanes.reduce(none, |(mut left, mut whats), (right, met)| {
        left.absorb(right);
        whats.absorb(met);
        (left, whats)
    });
    *whats = met;
    surveyed
}

/// What is too short to be in the page by itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Short {
    /// Stretches from this length on are there, in nanoseconds.
    pub(super) least: u64,
    /// Sums of a lane; 0: everything is there.
    pub(super) bins: usize,
    /// Their length.
    pub(super) bin_ns: f64,
}

impl Short {
    pub(super) fn new(surveyed: &Surveyed, lanes: usize, length: i64) -> Short {
        if surveyed.spans <= MOST {
            return Short {
                least: 0,
                bins: 0,
                bin_ns: 0.0,
            };
        }
        let (mut kept, mut at) = (0, surveyed.lengths.len());
        while at > 0 && kept + surveyed.lengths[at - 1] <= MOST {
            at -= 1;
            kept += surveyed.lengths[at];
        }
        let bins = (MOST_BINS / lanes.max(1)).clamp(*BINS.start(), *BINS.end());
        Short {
            least: least(at),
            bins,
            bin_ns: length.max(1) as f64 / bins as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_length_is_counted_where_it_belongs() {
        let lengths = (0..2000).chain([1 << 40, (1 << 40) + 1, u64::MAX / 3, u64::MAX]);
        for ns in lengths {
            let at = place(ns);
            assert!(least(at) <= ns, "{ns}");
            assert!(at == place(u64::MAX) || ns < least(at + 1), "{ns}");
        }
    }
}
