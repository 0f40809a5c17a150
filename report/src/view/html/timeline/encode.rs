//! Columns of a lane's spans: numbers of variable length, seven bits a byte, deflated together. `assets/timeline/decode.js` reads
//! them.

use super::lanes::{Short, Sink};
use super::whats::{CLASSES, IDLE, Whats};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use ompfuse_fuse::run::timeline::{Span, Timeline};
use rustc_hash::FxHashMap;
use std::io::Write;

/// Longest labels that are in the page, in components.
const MOST_COMPONENTS: usize = 64;

/// A lane's columns.
pub(super) struct Lane {
    begin: i64,
    short: Short,
    last: i64,
    opened: u32,
    gaps: Vec<u64>,
    lengths: Vec<u64>,
    whats: Vec<u64>,
    /// Of each span the item that it belongs to, from 1.
    refs: Vec<u64>,
    /// Spans that are open: their item, or their only stretch so far.
    open: FxHashMap<u32, Seen>,
    own: Vec<u64>,
    labels: Vec<String>,
    counts: Vec<Vec<u64>>,
    read: Vec<Option<u64>>,
    /// By bin and class.
    sums: Vec<[f64; CLASSES.len()]>,
    number: Vec<u64>,
    most: FxHashMap<(u32, u16), f64>,
}

/// Stretches of a span that are in the page.
struct Seen {
    first: usize,
    item: Option<u64>,
}

impl Lane {
    /// `begin`: of the page's time; `events`: so many have counts.
    pub(super) fn new(begin: i64, events: usize, short: Short) -> Lane {
        Lane {
            begin,
            short,
            last: begin,
            opened: 0,
            gaps: vec![],
            lengths: vec![],
            whats: vec![],
            refs: vec![],
            open: FxHashMap::default(),
            own: vec![],
            labels: vec![],
            counts: vec![vec![]; events],
            read: vec![],
            sums: vec![[0.0; CLASSES.len()]; short.bins],
            number: vec![0; short.bins],
            most: FxHashMap::default(),
        }
    }

    fn new_item(&mut self) -> u64 {
        self.own.push(0);
        self.labels.push(String::new());
        self.counts.iter_mut().for_each(|column| column.push(0));
        self.own.len() as u64
    }

    /// Adds a stretch to the sums of the bins that it is in; it counts in the first.
    fn sum_up(&mut self, what: u16, class: u8, begin: i64, end: i64) {
        let at = |ns: i64| (ns - self.begin) as f64 / self.short.bin_ns;
        let (from, to) = (at(begin), at(end));
        let last = self.short.bins - 1;
        self.number[(from as usize).min(last)] += 1;
        let mut bin = (from as usize).min(last);
        loop {
            let share = (to.min((bin + 1) as f64) - from.max(bin as f64)).max(0.0);
            let ns = share * self.short.bin_ns;
            self.sums[bin][class as usize] += ns;
            *self.most.entry((bin as u32, what)).or_default() += ns;
            bin += 1;
            if bin > last || bin as f64 >= to {
                return;
            }
        }
    }
}

impl Sink for Lane {
    fn enter(&mut self) -> u32 {
        self.opened = self.opened.wrapping_add(1);
        self.opened
    }

    fn stretch(&mut self, whats: &mut Whats<'_>, what: u16, open: u32, begin: i64, end: i64) {
        let class = whats.class_of(what);
        if class == IDLE {
            return;
        }
        if ((end - begin) as u64) < self.short.least {
            return self.sum_up(what, class, begin, end);
        }
        let at = self.refs.len();
        self.gaps.push((begin - self.last).max(0) as u64);
        self.lengths.push((end - begin) as u64);
        self.whats.push(u64::from(what));
        self.last = end;
        // Who has several stretches has an item.
        let item = match self.open.get(&open).map(|seen| (seen.first, seen.item)) {
            None => {
                self.open.insert(
                    open,
                    Seen {
                        first: at,
                        item: None,
                    },
                );
                0
            }
            Some((_, Some(item))) => item,
            Some((first, None)) => {
                let item = self.new_item();
                self.refs[first] = item;
                self.open.insert(
                    open,
                    Seen {
                        first,
                        item: Some(item),
                    },
                );
                item
            }
        };
        self.refs.push(item);
    }

    fn leave(
        &mut self,
        timeline: &Timeline<'_>,
        lane: &ompfuse_fuse::run::timeline::Lane,
        span: &Span<'_>,
        open: u32,
        own_ns: u64,
    ) {
        let Some(seen) = self.open.remove(&open) else {
            return;
        };
        let item = match seen.item {
            Some(item) => item,
            None if span.is_unit() => {
                let item = self.new_item();
                self.refs[seen.first] = item;
                item
            }
            None => return,
        };
        let at = item as usize - 1;
        self.own[at] = own_ns;
        if span.is_unit() {
            let label = timeline.label(lane, span, MOST_COMPONENTS);
            self.labels[at] = label.map(|l| l.to_string()).unwrap_or_default();
        }
        timeline.counts(lane, span, &mut self.read);
        for (column, count) in self.counts.iter_mut().zip(&self.read) {
            column[at] = count.map_or(0, |c| c.saturating_add(1));
        }
    }
}

/// All lanes' columns.
#[derive(Default)]
pub(super) struct Columns {
    bytes: Vec<u8>,
}

impl Columns {
    /// Adds a lane. Gives its numbers of spans and items.
    pub(super) fn add(&mut self, lane: Lane) -> (u64, u64) {
        let (spans, items) = (lane.refs.len() as u64, lane.own.len() as u64);
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
        if lane.short.bins > 0 {
            self.add_sums(&lane);
        }
        (spans, items)
    }

    fn add_sums(&mut self, lane: &Lane) {
        for class in 0..CLASSES.len() {
            for sums in &lane.sums {
                self.put(sums[class].round() as u64);
            }
        }
        lane.number.iter().for_each(|&number| self.put(number));
        let mut most = vec![(0.0, 0); lane.short.bins];
        for (&(bin, what), &ns) in &lane.most {
            let best = &mut most[bin as usize];
            let is_more = ns > best.0 || (ns == best.0 && u64::from(what) + 1 < best.1);
            if best.1 == 0 || is_more {
                *best = (ns, u64::from(what) + 1);
            }
        }
        most.iter().for_each(|&(_, what)| self.put(what));
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
