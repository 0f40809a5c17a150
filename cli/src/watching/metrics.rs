//! What has been recorded by now, as metrics.

use super::{Known, Watching, now_ns};
use ompfuse_export::openmetrics::{Family, Labels, place};
use ompfuse_format::Construct;
use ompfuse_format::record::{USER_MODULE, split_site};
use ompfuse_fuse::summary::live::{LiveRegion, LiveSite};
use std::collections::BTreeMap;

impl Watching {
    /// Sums since the recording began.
    pub(super) fn metrics(&self) -> Vec<Family> {
        let places = self.live.thread_places();
        let (mut run, mut since) = (Family::run(), Family::recording());
        let mut threads = Family::threads();
        let now = now_ns();
        for (number, process) in self.processes.iter().enumerate() {
            let folder = ("folder", process.folder.display().to_string());
            let labels = process.labels();
            run.add([labels.clone(), vec![folder]].concat(), 1);
            if let Some(begin) = process.begin_ns {
                since.add(labels.clone(), now.saturating_sub(begin) as f64 / 1e9);
            }
            let own = places.values().filter(|(of, _)| *of == number);
            threads.add(labels, own.count() as u64);
        }
        let mut lost = Family::lost();
        lost.add(vec![], self.live.lost());
        let mut of_regions = OfRegions::new(places);
        for (key, region) in &self.live.regions {
            of_regions.add(self, *key, region);
        }
        let OfRegions {
            time,
            entries,
            units,
            events,
            ..
        } = of_regions;
        vec![run, since, threads, lost, time, entries, units, events]
    }

    fn labels(&self, key: LiveSite) -> Labels {
        let process = &self.processes[key.0];
        let (module, index) = split_site(key.1);
        let known = process.modules.get(&module);
        let info = known.and_then(|(_, sites)| sites.get(index as usize));
        let user = (module == USER_MODULE).then_some(Construct::UserRegion);
        let name = self.live.names.get(&key).map(String::as_str);
        let address = info.map_or_else(|| index.to_string(), |i| i.address.to_string());
        let place = place(
            info.map(|i| i.construct).or(user),
            info.and_then(|i| i.source.as_ref()),
            name.or_else(|| info?.function.as_deref()),
            known.map(|(path, _)| path.as_str()),
            &address,
        );
        [place, process.labels()].concat()
    }
}

impl Known {
    fn labels(&self) -> Labels {
        let rank = self.rank.map(|rank| ("rank", rank.to_string()));
        let process = ("process", self.pid.to_string());
        [process].into_iter().chain(rank).collect()
    }
}

struct OfRegions {
    /// The threads' numbers in their processes.
    places: BTreeMap<u32, (usize, u32)>,
    time: Family,
    entries: Family,
    units: Family,
    events: Family,
}

impl OfRegions {
    fn new(places: BTreeMap<u32, (usize, u32)>) -> OfRegions {
        OfRegions {
            places,
            time: Family::region_time(),
            entries: Family::entries(),
            units: Family::units(),
            events: Family::events(),
        }
    }

    fn add(&mut self, watching: &Watching, key: LiveSite, region: &LiveRegion) {
        let labels = watching.labels(key);
        let with = |more: &[(&'static str, &str)]| -> Labels {
            let more = more
                .iter()
                .map(|(name, value)| (*name, (*value).to_owned()));
            labels.iter().cloned().chain(more).collect()
        };
        self.entries.add(labels.clone(), region.entered());
        if region.xus() > 0 {
            self.units.add(labels.clone(), region.xus());
        }
        for (event, count) in watching.live.counts(region) {
            self.events.add(with(&[("event", &event)]), count);
        }
        // Ticks say nothing to anybody.
        let Some(ns_per_tick) = watching.processes[key.0].ns_per_tick else {
            return;
        };
        for ((number, class), split) in region.by_class() {
            let thread = self
                .places
                .get(&number)
                .map_or(number, |(_, thread)| *thread);
            let thread = thread.to_string();
            let states = [
                ("work", split.work),
                ("wait", split.wait),
                ("runtime", split.runtime),
            ];
            for (state, ticks) in states.into_iter().filter(|(_, ticks)| *ticks > 0) {
                let of_class = class.map(|c| ("class", c.name()));
                let more: Vec<_> = [("thread", thread.as_str()), ("state", state)]
                    .into_iter()
                    .chain(of_class)
                    .collect();
                self.time.add(with(&more), ticks as f64 * ns_per_tick / 1e9);
            }
        }
    }
}
