//! Whether the machine, and not the program, got slower: by what it needed for a computation that is always the same.

use super::{ChangePoint, Curve};
use crate::Pace;

/// A measurement during which the machine's speed changed by more than this tells nothing.
const UNSTEADY: f64 = 0.1;

/// A change is the program's if the machine's speed changed by less than this part of it.
const PART: f64 = 0.5;

/// The speed over a commit's baselines; `None`: of some it is not known.
pub(super) fn of_all(paces: impl Iterator<Item = Option<Pace>>) -> Option<Pace> {
    paces.reduce(|a, b| Some(a?.with(b?))).flatten()
}

/// Whether times that were measured meanwhile can't be compared.
pub(super) fn is_unsteady(pace: &Pace) -> bool {
    pace.apart() > UNSTEADY
}

/// Takes those changes out of a curve with which the machine's speed changed as well. `paces`: of each commit.
pub(super) fn part(curve: &mut Curve, paces: &[Option<Pace>]) {
    let all = std::mem::take(&mut curve.changes);
    let bounds: Vec<u32> = [0]
        .into_iter()
        .chain(all.iter().map(|c| c.at))
        .chain([paces.len() as u32])
        .collect();
    for (change, around) in all.into_iter().zip(bounds.windows(3)) {
        match is_of_machine(&change, [around[0], around[1], around[2]], paces) {
            true => curve.undecided.push(change),
            false => curve.changes.push(change),
        }
    }
}

fn is_of_machine(change: &ChangePoint, [begin, at, end]: [u32; 3], paces: &[Option<Pace>]) -> bool {
    let level = |from: u32, to: u32| -> Option<f64> {
        let of = paces.get(from as usize..to as usize)?.iter().flatten();
        let logs: Vec<f64> = of.map(|p| p.typical_s().ln()).collect();
        (!logs.is_empty()).then(|| logs.iter().sum::<f64>() / logs.len() as f64)
    };
    let size = (change.after / change.before).ln();
    let shift = level(begin, at).zip(level(at, end)).map(|(a, b)| b - a);
    shift.is_some_and(|shift| shift * size > 0.0 && shift.abs() >= PART * size.abs())
}
