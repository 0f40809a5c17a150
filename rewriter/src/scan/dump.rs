//! What the scan knows of code before it looks for constructs, as values that developers can print and compare.

use super::cfg::Body;
use super::clock::Clock;
use super::decode::Pool;
use super::{Module, Read, ScanError, ScanOptions, function, read};
use crate::debug::DebugFiles;
use crate::model::LinkVa;
use ompfuse_progress::Progress;
use rayon::prelude::*;
use serde::Serialize;

/// A function as a graph of basic blocks. Blocks are named by their numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Code {
    /// The function's first address.
    pub start: LinkVa,
    /// Its name, where known.
    pub name: Option<String>,
    /// Why not every branch of it is known.
    pub trouble: Option<&'static str>,
    /// The first instruction that the decoder doesn't know.
    pub unknown: Option<LinkVa>,
    /// Blocks that control comes to in ways that no branch shows.
    pub roots: Vec<usize>,
    /// Its blocks, by address.
    pub blocks: Vec<BasicBlock>,
    /// Its natural loops, by header.
    pub loops: Vec<Cycle>,
}

/// Instructions that are executed one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BasicBlock {
    /// Address of the first instruction.
    pub start: LinkVa,
    /// Where the last one ends.
    pub end: LinkVa,
    /// Blocks that follow, the fall-through first.
    pub successors: Vec<usize>,
    /// Landing pads that its last call may lead to.
    pub pads: Vec<usize>,
    /// How control leaves the function at its end.
    pub exit: String,
    /// The immediate dominator.
    pub dominator: Option<usize>,
    /// The immediate post-dominator; the number of blocks stands for the function's end.
    pub post_dominator: Option<usize>,
}

/// A natural loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cycle {
    /// The block that all ways into it lead to.
    pub header: usize,
    /// Its blocks.
    pub blocks: Vec<usize>,
}

/// The functions of a file that may hold constructs, by address.
///
/// # Errors
/// As [`super::scan`].
pub fn code(bytes: &[u8], path: &str) -> Result<Vec<Code>, ScanError> {
    let (debug, options) = (DebugFiles::default(), ScanOptions::default());
    let (clock, progress) = (Clock::default(), Progress::default());
    let Read {
        module, candidates, ..
    } = read(bytes, path, debug, options, clock, progress)?;
    let (jobs, _) = function::jobs(&module, candidates);
    let pool = Pool::default();
    let mut all: Vec<Code> = jobs
        .into_par_iter()
        .map_init(
            || pool.lend(),
            |lent, job| {
                let body = Body::build(&module, lent.scratch(), job.function, &job.candidates);
                let code = Code::of(&module, &body);
                lent.scratch().recycle(body);
                code
            },
        )
        .collect();
    all.sort_by_key(|code| code.start);
    Ok(all)
}

impl Code {
    fn of(module: &Module<'_>, body: &Body) -> Code {
        let function = module.functions.get(body.function);
        let (dom, post) = (body.dominators(), body.post_dominators());
        let blocks = body.blocks.iter().enumerate().map(|(n, block)| BasicBlock {
            start: LinkVa(block.start),
            end: LinkVa(body.last(n).map_or(block.start, |i| i.next_ip())),
            successors: block.succs.to_vec(),
            pads: block.pads.to_vec(),
            exit: format!("{:?}", block.exit),
            dominator: dom.parent(n),
            post_dominator: post.parent(n),
        });
        let loops = body.natural_loops(&dom).into_iter().map(|l| Cycle {
            header: l.header,
            blocks: l.blocks.into_iter().collect(),
        });
        Code {
            start: LinkVa(function.start),
            name: function.name.map(str::to_owned),
            trouble: body.trouble,
            unknown: body.unknown.map(LinkVa),
            roots: body.roots.clone(),
            blocks: blocks.collect(),
            loops: loops.collect(),
        }
    }
}
