//! What threads keep from function to function.

use super::decoded::{Flow, Room};
use crate::scan::cfg::{Block, Body};
use crate::scan::no_return::NoReturn;
use iced_x86::Instruction;
use std::sync::Mutex;

/// What a thread keeps from function to function: answers, and memory to use again.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(super) no_return: NoReturn,
    pub(super) insns: Vec<Instruction>,
    pub(super) flows: Vec<Flow>,
    pub(super) room: Room,
    pub(super) blocks: Vec<Block>,
    pub(super) bytes: Vec<Vec<u32>>,
}

/// What threads keep that look at no function right now.
#[derive(Default)]
pub(crate) struct Pool(Mutex<Vec<Scratch>>);

impl Pool {
    /// What a thread has kept, for the one that asks.
    pub(crate) fn lend(&self) -> Lent<'_> {
        let kept = self.0.lock().ok().and_then(|mut kept| kept.pop());
        Lent {
            pool: self,
            scratch: kept.unwrap_or_default(),
        }
    }
}

/// Of a [`Pool`], until it is dropped.
pub(crate) struct Lent<'p> {
    pool: &'p Pool,
    scratch: Scratch,
}

impl Lent<'_> {
    /// What was lent.
    pub(crate) fn scratch(&mut self) -> &mut Scratch {
        &mut self.scratch
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        if let Ok(mut kept) = self.pool.0.lock() {
            kept.push(std::mem::take(&mut self.scratch));
        }
    }
}

impl Scratch {
    /// Takes the memory of a function that nobody needs any more.
    pub(crate) fn recycle(&mut self, body: Body) {
        (self.insns, self.blocks) = (body.insns, body.blocks);
        self.blocks.clear();
        if self.insns.capacity() > MAX_KEPT {
            (self.insns, self.blocks) = (Vec::new(), Vec::new());
            self.room = Room::default();
        }
    }
}

/// The most instructions that memory is kept for.
const MAX_KEPT: usize = 1 << 16;
