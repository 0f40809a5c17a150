//! Loops that may be two in the source: gcc makes one of two with `nowait` and the same bounds, whose tests it then makes once.

use super::{Analysis, NaturalLoop, again};

/// More instructions than this of a cycle aren't looked at.
const MOST: usize = 256;

/// Addresses of the instructions of cycles over the shares of division `id` that are executed one behind the other in the loop
/// whose diverging branch is that of block `first`; `None` if there are no two. What such a loop is in the source only lines
/// tell: a vectorised loop has its last iterations in a second cycle too.
pub(super) fn cycles(a: &Analysis<'_, '_>, id: u64, first: usize) -> Option<Vec<Vec<u64>>> {
    let extent = a.extent(first);
    let own = |c: &&NaturalLoop| extent.contains(&c.header) && again::iterates(a, c, id);
    let own: Vec<&NaturalLoop> = a.cycles().iter().filter(own).collect();
    let outermost = NaturalLoop::outermost(&own);
    let before = |x: &NaturalLoop| {
        let behind = a.side(first, x.header);
        let mut others = outermost.iter().filter(|y| y.header != x.header);
        others.any(|y| behind.contains(&y.header))
    };
    outermost.iter().any(|x| before(x)).then(|| {
        let addresses = |c: &NaturalLoop| {
            let insns = c.blocks.iter().flat_map(|&b| a.body.block_insns(b));
            insns.map(|i| i.ip()).take(MOST).collect()
        };
        outermost.iter().map(|c| addresses(c)).collect()
    })
}
