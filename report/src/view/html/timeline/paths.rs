//! Critical paths: units in their order, on the lanes that executed them.

use super::Drawn;
use ompfuse_fuse::span::{Drawn as Graph, Stretch};
use rustc_hash::FxHashMap;

impl Drawn {
    /// Says what is on the critical path; `None`: there are too many spans.
    pub fn set_paths(&mut self, graphs: Option<&[Graph]>) {
        let of = |graph: &Graph| -> Vec<Stretch> {
            let units = graph.path.iter();
            units.map(|&u| graph.units[u as usize].stretch).collect()
        };
        self.paths = graphs.map(|graphs| graphs.iter().map(of).collect());
    }

    /// The same by position in `order`, since the page's begin.
    pub(super) fn shown_paths(&self, order: &[usize]) -> Vec<Vec<(u32, u64, u64)>> {
        let shown = (0..).zip(order).map(|(at, &number)| {
            let lane = &self.lanes[number];
            ((lane.process, lane.position), at)
        });
        let shown: FxHashMap<(u16, usize), u32> = shown.collect();
        let since = |ns: i64| (ns - self.begin).max(0) as u64;
        let piece = |s: &Stretch| {
            let lane = *shown.get(&(s.process, usize::from(s.thread)))?;
            Some((lane, since(s.begin_ns), since(s.end_ns)))
        };
        let paths = self.paths.iter().flatten();
        let paths = paths.map(|path| path.iter().filter_map(piece).collect());
        paths.filter(|path: &Vec<_>| !path.is_empty()).collect()
    }
}
