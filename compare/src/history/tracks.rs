//! Regions over builds: the same construct in one commit after the other.

use super::Named;
use crate::matching;
use crate::{Quantity, Sample};
use ompfuse_account::model::key::RegionKey;
use std::collections::{BTreeMap, HashMap};

/// A region in several baselines.
#[derive(Debug)]
pub(super) struct Track<'a> {
    /// As the newest one has it.
    pub(super) key: &'a RegionKey,
    /// The largest share of a baseline's time.
    pub(super) share: f64,
    /// What was measured, by the position of the baseline.
    pub(super) values: BTreeMap<usize, &'a BTreeMap<Quantity, Sample>>,
}

/// What a region's source says of it: one that was away for a commit comes back as this.
type Place<'a> = (
    &'a str,
    &'a Option<String>,
    &'a Option<String>,
    Option<u32>,
    &'static str,
);

fn place(key: &RegionKey) -> Place<'_> {
    let construct = key.construct.name();
    (&key.module, &key.function, &key.file, key.line, construct)
}

/// The regions of baselines, each matched with the one before. Copies that can't be told apart begin anew with each.
pub(super) fn tracks<'a>(sides: &[&'a Named]) -> Vec<Track<'a>> {
    let mut tracks: Vec<Track<'a>> = vec![];
    let mut now: HashMap<&RegionKey, usize> = HashMap::new();
    let mut gone: HashMap<Place<'a>, usize> = HashMap::new();
    for (at, named) in sides.iter().enumerate() {
        let mut next: HashMap<&RegionKey, usize> = HashMap::new();
        if let Some(before) = at.checked_sub(1).map(|b| sides[b]) {
            let found = matching::matched(&before.side, &named.side);
            for pair in &found.pairs {
                if let ([a], [b]) = (&pair.a[..], &pair.b[..])
                    && let Some(&track) = now.get(&a.key)
                {
                    next.insert(&b.key, track);
                }
            }
        }
        for (key, track) in now {
            if !next.values().any(|t| *t == track) {
                gone.insert(place(key), track);
            }
        }
        for region in &named.side.regions {
            let known = next.get(&region.key).copied();
            let track = known.or_else(|| gone.remove(&place(&region.key)));
            let track = track.unwrap_or_else(|| {
                tracks.push(Track {
                    key: &region.key,
                    share: 0.0,
                    values: BTreeMap::new(),
                });
                tracks.len() - 1
            });
            next.insert(&region.key, track);
            let track = &mut tracks[track];
            track.key = &region.key;
            track.share = track.share.max(region.share);
            track.values.insert(at, &region.values);
        }
        now = next;
    }
    tracks
}
