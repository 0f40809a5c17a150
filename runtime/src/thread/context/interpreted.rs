//! Python frames in calling contexts: behind the return addresses up to the interpreter. Its own calls are left out.

use super::{Contexts, FUNCTIONS};
use crate::python::{Frame, Frames};
use crate::thread::Thread;
use crate::unwind::Chain;
use ompfuse_format::record::context::{ChainEnd, Language, MAX_PATH, Object};

/// Whether Python's frames are callers of what a chain has. Those of a chain that ends in a construct's body are outside of that.
pub(super) fn are_outside(chain: &Chain) -> bool {
    chain.is_met || chain.end != ChainEnd::Whole
}

/// A chain's hash becomes that of the frames, too, so many at most.
pub(super) fn mix(frames: &Frames, chain: &mut Chain, depth: usize) {
    let (hash, is_cut) = frames.mix(chain.hash, depth.min(chain.room()));
    let end = match is_cut {
        true => ChainEnd::Depth,
        false => ChainEnd::Whole,
    };
    chain.set(hash, end);
}

impl Thread {
    /// Continues a chain by the frames that are in its hash, and tells of their functions.
    #[cold]
    #[inline(never)]
    pub(super) fn go_on(
        &self,
        contexts: &Contexts,
        frames: &Frames,
        chain: &mut Chain,
        depth: usize,
    ) {
        let mut is_known = true;
        frames.each(depth.min(chain.room()), |frame| {
            let begin = frame.begin();
            is_known = is_known && self.tell_function(contexts, frame, begin);
            if is_known {
                chain.push(begin + 1 + frame.line());
            }
        });
        if !is_known {
            chain.end = ChainEnd::Unknown;
        }
    }

    /// Writes which function is behind these addresses, if that wasn't told; false if it can't be.
    fn tell_function(&self, contexts: &Contexts, frame: &Frame, begin: u64) -> bool {
        if contexts.functions.iter().any(|f| f.get() == begin) {
            return true;
        }
        let mut path = [0; MAX_PATH];
        let len = frame.write_name(&mut path);
        let (end, bias) = Frame::end(begin);
        let object = Object {
            language: Some(Language::Python),
            begin,
            end,
            bias,
            build_id: &[],
            path: path.get(..len).unwrap_or_default(),
        };
        if len == 0 || !self.write_object(&object) {
            return false;
        }
        let told = contexts.told_functions.get();
        if let Some(place) = contexts.functions.get(told % FUNCTIONS) {
            place.set(begin);
        }
        contexts.told_functions.set(told.wrapping_add(1));
        true
    }
}
