//! Columns of a lane's spans: numbers of variable length, seven bits a byte, deflated together. `assets/timeline/decode.js` reads
//! them.

use super::bins::Bins;
use super::lanes::Drawing;
use super::whats::{CLASSES, Whats};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use ompfuse_fuse::run::timeline::Timeline;
use rustc_hash::FxHashMap;
use std::io::Write;

/// Longest labels that are in the page, in components.
const MOST_COMPONENTS: usize = 64;

/// A lane's columns.
#[derive(Debug)]
pub(super) struct Lane {
    gaps: Vec<u64>,
    lengths: Vec<u64>,
    whats: Vec<u64>,
    /// Of each span the item that it belongs to, from 1.
    refs: Vec<u64>,
    own: Vec<u64>,
    labels: Vec<String>,
    counts: Vec<Vec<u64>>,
    bins: Bins,
    /// Nanoseconds of what it did, idling too; see [`Whats`].
    times: Vec<u64>,
}

impl Lane {
    /// `number`: in the timeline. `begin`: of the page's time; `events`: so many have counts. `whats`: those of all lanes.
    pub(super) fn new(
        timeline: &Timeline<'_>,
        number: usize,
        drawing: Drawing<'_>,
        begin: i64,
        events: usize,
        whats: &mut Whats,
    ) -> Lane {
        let numbers = whats.absorb(&drawing.whats);
        let mut times = vec![];
        for (&number, ns) in numbers.iter().zip(drawing.whats.times()) {
            let at = usize::from(number);
            times.resize(times.len().max(at + 1), 0);
            times[at] += ns;
        }
        let mut lane = Lane {
            gaps: vec![],
            lengths: vec![],
            whats: vec![],
            refs: vec![],
            own: vec![],
            labels: vec![],
            counts: vec![vec![]; events],
            bins: drawing.bins,
            times,
        };
        lane.bins.renumber(&numbers);
        // Who has several stretches has an item, and so have units.
        let mut stretches: FxHashMap<u32, usize> = FxHashMap::default();
        for stretch in &drawing.stretches {
            *stretches.entry(stretch.open).or_default() += 1;
        }
        let of = &timeline.lanes()[number];
        let mut items: FxHashMap<u32, u64> = FxHashMap::default();
        let mut read = vec![];
        for left in &drawing.left {
            let span = &left.span;
            if !span.is_unit() && stretches.get(&left.open).is_none_or(|&n| n < 2) {
                continue;
            }
            let label = match span.is_unit() {
                true => timeline.label(of, span, MOST_COMPONENTS),
                false => None,
            };
            lane.own.push(left.own_ns);
            lane.labels
                .push(label.map(|l| l.to_string()).unwrap_or_default());
            timeline.counts(of, span, &mut read);
            for (column, count) in lane.counts.iter_mut().zip(&read) {
                column.push(count.map_or(0, |c| c.saturating_add(1)));
            }
            items.insert(left.open, lane.own.len() as u64);
        }
        let mut last = begin;
        for stretch in &drawing.stretches {
            lane.gaps.push((stretch.begin - last).max(0) as u64);
            lane.lengths.push((stretch.end - stretch.begin) as u64);
            lane.whats.push(u64::from(numbers[stretch.what as usize]));
            lane.refs
                .push(items.get(&stretch.open).copied().unwrap_or(0));
            last = stretch.end;
        }
        lane
    }

    /// Stretches that are there one by one.
    pub(super) fn spans(&self) -> u64 {
        self.refs.len() as u64
    }

    /// Nanoseconds by class. `classes`: of [`Whats`].
    pub(super) fn sums(&self, classes: &[u8]) -> [u64; CLASSES.len()] {
        let mut sums = [0; CLASSES.len()];
        for (&ns, &class) in self.times.iter().zip(classes) {
            sums[class as usize] += ns;
        }
        sums
    }
}

/// All lanes' columns.
#[derive(Default)]
pub(super) struct Columns {
    bytes: Vec<u8>,
}

impl Columns {
    /// Adds a lane. `classes`: of [`Whats`], if there are sums of what is too short. Gives its numbers of spans and items.
    pub(super) fn add(&mut self, lane: &Lane, classes: Option<&[u8]>) -> (u64, u64) {
        let (spans, items) = (lane.spans(), lane.own.len() as u64);
        for column in [
            &lane.gaps,
            &lane.lengths,
            &lane.whats,
            &lane.refs,
            &lane.own,
        ] {
            column.iter().for_each(|&number| self.put(number));
        }
        let mut last = "";
        let shared = |text: &str, last: &str| {
            let pairs = text.bytes().zip(last.bytes());
            pairs.take_while(|(a, b)| a == b).count()
        };
        let mut own = vec![];
        for label in &lane.labels {
            let common = shared(label, last);
            self.put(common as u64);
            own.push(&label[common..]);
            last = label;
        }
        own.iter().for_each(|text| self.put(text.len() as u64));
        own.iter()
            .for_each(|text| self.bytes.extend_from_slice(text.as_bytes()));
        lane.counts
            .iter()
            .flatten()
            .for_each(|&count| self.put(count));
        if let Some(classes) = classes {
            self.add_sums(&lane.bins, classes);
        }
        (spans, items)
    }

    fn add_sums(&mut self, bins: &Bins, classes: &[u8]) {
        for class in 0..CLASSES.len() {
            let sums = bins.of_class(class as u8, classes);
            sums.for_each(|ns| self.put(ns));
        }
        bins.number.iter().for_each(|&number| self.put(number));
        let most = bins.most();
        most.for_each(|what| self.put(what.map_or(0, |what| u64::from(what) + 1)));
    }

    fn put(&mut self, mut number: u64) {
        while number > 127 {
            self.bytes.push(number as u8 | 128);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    /// As text.
    pub(super) fn finish(self) -> String {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        let written = encoder.write_all(&self.bytes);
        let deflated = written.and_then(|()| encoder.finish());
        STANDARD.encode(deflated.expect("memory takes everything"))
    }
}
