//! Calling contexts: the chain of return addresses where a region is forked, and of Python frames behind them. A thread finds a chain that it has met by its hash; a new one is written once, after the files that its addresses are in.

use super::{Thread, sums};
use crate::python::{self, Frame, Frames};
use crate::syscall;
use crate::unwind::{self, Caller, Chain, Rules};
use core::cell::Cell;
use core::sync::atomic::{AtomicU32, Ordering, compiler_fence};
use ompfuse_format::Construct;
use ompfuse_format::record::context::{
    self, Calls, ChainEnd, Context, Language, MAX_BUILD_ID, MAX_DEPTH, MAX_PATH, Object,
};

/// Most return addresses that are wanted; 0: none.
static DEPTH: AtomicU32 = AtomicU32::new(0);
/// How often modules have come.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Chains that a thread finds again. Of two that come to one place the later one stays; the other is written anew when it is next met.
const CHAINS: usize = 1024;
/// Sites whose last context is known, likewise.
const SITES: usize = 64;
/// Files that a thread has told of. The first ones are told again where there are more.
const OBJECTS: usize = 128;
/// Python functions, likewise.
const FUNCTIONS: usize = 512;

/// What a thread knows of contexts. Zeros are valid: nothing.
#[derive(Debug)]
pub(super) struct Contexts {
    rules: Rules,
    chains: [Known; CHAINS],
    sites: [Cell<SiteContext>; SITES],
    objects: [Cell<usize>; OBJECTS],
    told: Cell<usize>,
    functions: [Cell<u64>; FUNCTIONS],
    told_functions: Cell<usize>,
    /// Number of the last context.
    last: Cell<u64>,
    generation: Cell<u32>,
}

#[derive(Debug)]
struct Known {
    number: Cell<u64>,
    hash: Cell<u64>,
}

/// The context that regions of a site are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SiteContext {
    /// The construct's number plus 1, and the site.
    key: u64,
    context: u64,
}

/// Records contexts from now on, so deep at most.
pub(crate) fn switch_on(depth: u32) {
    if depth > 0 && unwind::prepare() {
        python::look();
        DEPTH.store(depth.min(MAX_DEPTH as u32), Ordering::Relaxed);
    }
}

/// Other code may be where some was: chains mean something else.
pub(crate) fn modules_have_come() {
    if DEPTH.load(Ordering::Relaxed) > 0 {
        python::look();
    }
    GENERATION.fetch_add(1, Ordering::Release);
}

/// Whether Python's frames are callers of what a chain has. Those of a chain that ends in a construct's body are outside of that.
fn are_outside(chain: &Chain) -> bool {
    chain.is_met || chain.end != ChainEnd::Whole
}

/// A chain's hash becomes that of the frames, too, so many at most.
fn mix(frames: &Frames, chain: &mut Chain, depth: usize) {
    let (hash, is_cut) = frames.mix(chain.hash, depth.min(chain.room()));
    let end = match is_cut {
        true => ChainEnd::Depth,
        false => ChainEnd::Whole,
    };
    chain.set(hash, end);
}

impl Thread {
    /// A region is about to be forked at this site, by this call. Its node comes next. Returns its context where sums are kept apart by that;
    /// else, and where it is not known, 0.
    #[inline(always)]
    pub(crate) fn note_fork(
        &self,
        construct: Construct,
        site: u32,
        caller: impl FnOnce() -> Caller,
    ) -> u32 {
        match DEPTH.load(Ordering::Relaxed) {
            0 => 0,
            _ => self.note_calls(construct, site, &caller()),
        }
    }

    #[inline(never)]
    fn note_calls(&self, construct: Construct, site: u32, caller: &Caller) -> u32 {
        if self.is_gone() || self.is_off(site) {
            return 0;
        }
        let Some(contexts) = self.contexts() else {
            return 0;
        };
        let depth = DEPTH.load(Ordering::Relaxed) as usize;
        let stack = self.here.stack.bounds();
        // The interpreter frees the states of other threads while these go on.
        let frames = match self.buffer.is_main() {
            true => python::frames(stack, caller.sp),
            false => None,
        };
        let before = frames.map_or(0..0, |frames| frames.interpreter());
        let mut chain = unwind::walk(&contexts.rules, stack, caller, depth, &before);
        let frames = frames.filter(|_| are_outside(&chain));
        if let Some(frames) = frames {
            mix(&frames, &mut chain, depth);
        }
        // SAFETY: less than CHAINS.
        let known = unsafe { contexts.chains.get_unchecked(chain.hash as usize % CHAINS) };
        // As in `unwind::Rules`: a signal handler may change the place.
        let mut context = known.number.get();
        compiler_fence(Ordering::SeqCst);
        if known.hash.get() != chain.hash {
            if let Some(frames) = frames {
                self.go_on(contexts, &frames, &mut chain, depth);
            }
            context = self.learn_context(contexts, known, &chain);
        }
        // Sums' size is bounded, however often callers take turns: each context is told once.
        if self.keeps_sums_only() {
            return context as u32;
        }
        let calls = Calls {
            construct,
            site,
            context,
        };
        let key = u64::from(site) | (construct as u64 + 1) << 32;
        let now = SiteContext { key, context };
        // SAFETY: less than SITES.
        let place = unsafe { contexts.sites.get_unchecked(site as usize % SITES) };
        if place.get() != now && self.write_calls(&calls) {
            place.set(now);
        }
        match self.keeps_sums() {
            true => context as u32,
            false => 0,
        }
    }

    /// Makes room for contexts, where they are wanted, when the thread begins: it may forbid itself system calls later. Pages that are
    /// never used take no memory.
    pub(crate) fn make_contexts(&self) {
        if DEPTH.load(Ordering::Relaxed) != 0
            && let Some(memory) = syscall::map_memory(size_of::<Contexts>())
        {
            let contexts = memory.cast::<Contexts>();
            // SAFETY: fresh memory; zeros are valid.
            unsafe { &*contexts }
                .generation
                .set(GENERATION.load(Ordering::Acquire));
            self.contexts.set(contexts);
        }
    }

    /// This thread's contexts; `None` without memory.
    #[inline(always)]
    fn contexts(&self) -> Option<&Contexts> {
        // SAFETY: made above, and given back with the thread.
        let contexts = unsafe { self.contexts.get().as_ref() }?;
        if contexts.generation.get() != GENERATION.load(Ordering::Acquire) {
            self.renew_contexts();
        }
        Some(contexts)
    }

    #[cold]
    #[inline(never)]
    fn renew_contexts(&self) {
        // SAFETY: as above.
        let Some(contexts) = (unsafe { self.contexts.get().as_ref() }) else {
            return;
        };
        contexts.generation.set(GENERATION.load(Ordering::Acquire));
        contexts.rules.clear();
        contexts.chains.iter().for_each(|known| known.hash.set(0));
        let nobody = SiteContext { key: 0, context: 0 };
        contexts.sites.iter().for_each(|site| site.set(nobody));
        contexts.objects.iter().for_each(|begin| begin.set(0));
    }

    /// Tells of a context that this thread doesn't know. Returns its number, 0 if there is no room for it.
    #[cold]
    #[inline(never)]
    fn learn_context(&self, contexts: &Contexts, known: &Known, chain: &Chain) -> u64 {
        let number = match self.keeps_sums() {
            true => self.sum_up_context(contexts, chain),
            false => contexts.last.get() + 1,
        };
        contexts.last.set(number);
        let is_written = number != 0 && !self.keeps_sums_only();
        if is_written && !self.write_context(contexts, number, chain) {
            return 0;
        }
        known.hash.set(0);
        compiler_fence(Ordering::SeqCst);
        known.number.set(number);
        compiler_fence(Ordering::SeqCst);
        known.hash.set(chain.hash);
        number
    }

    /// The number that a context has in sums, which is told by the first thread that meets it; 0: there are too many.
    fn sum_up_context(&self, contexts: &Contexts, chain: &Chain) -> u64 {
        match sums::calls::number(chain.hash, contexts.generation.get()) {
            Some((number, true)) => {
                self.tell_objects(contexts, chain);
                self.tell_in_sums(number, chain);
                u64::from(number)
            }
            Some((number, false)) => u64::from(number),
            None => 0,
        }
    }

    fn tell_objects(&self, contexts: &Contexts, chain: &Chain) {
        for &address in chain.addresses() {
            self.tell_object(contexts, address.wrapping_sub(1));
        }
    }

    /// Writes a context; false without room for it.
    fn write_context(&self, contexts: &Contexts, number: u64, chain: &Chain) -> bool {
        let addresses = chain.addresses();
        self.tell_objects(contexts, chain);
        let len = Context::LEN + 8 * addresses.len();
        let Some(out) = self.buffer.room(len) else {
            return false;
        };
        let put = |at: usize, word| {
            // SAFETY: the buffer gives as many words as the record has.
            unsafe { out.add(at).write(word) };
        };
        context::encode_context(number, chain.end, addresses.len(), put);
        for (at, &address) in (2..).zip(addresses) {
            put(at, address);
        }
        self.buffer.commit(out, len / 8)
    }

    /// Writes which file an address is in, where contexts are recorded.
    pub(super) fn tell_object_of(&self, address: u64) {
        if let Some(contexts) = self.contexts() {
            self.tell_object(contexts, address);
        }
    }

    /// Writes which file an address is in, if that wasn't told.
    fn tell_object(&self, contexts: &Contexts, address: u64) {
        let Some(found) = unwind::find(address) else {
            return;
        };
        if contexts.objects.iter().any(|o| o.get() == found.begin) {
            return;
        }
        let (path, id) = (found.path(), unwind::build_id(&found));
        let object = Object {
            language: None,
            begin: found.begin as u64,
            end: found.end as u64,
            bias: found.bias as u64,
            build_id: id.get(..id.len().min(MAX_BUILD_ID)).unwrap_or_default(),
            path: path.get(..path.len().min(MAX_PATH)).unwrap_or_default(),
        };
        if self.write_object(&object) {
            let told = contexts.told.get();
            if let Some(place) = contexts.objects.get(told % OBJECTS) {
                place.set(found.begin);
            }
            contexts.told.set(told.wrapping_add(1));
        }
    }

    /// Writes what an address is in; false if that isn't tried.
    fn write_object(&self, object: &Object<'_>) -> bool {
        let len = Object::len_of(object.build_id.len(), object.path.len());
        // A table of sums can't grow behind a stage that was written.
        if self.keeps_sums_only() && !self.buffer.has_room(len) {
            return false;
        }
        let Some(out) = self.buffer.room(len) else {
            return false;
        };
        context::encode_object(object, |at, word| {
            // SAFETY: the encoder writes as many words as the buffer gives.
            unsafe { out.add(at).write(word) };
        });
        let _ = self.buffer.commit(out, len / 8); // a lost record is counted
        true
    }

    #[cold]
    #[inline(never)]
    fn write_calls(&self, calls: &Calls) -> bool {
        let Some(out) = self.buffer.room(Calls::LEN) else {
            return false;
        };
        context::encode_calls(calls, |at, word| {
            // SAFETY: the encoder writes as many words as the buffer gives.
            unsafe { out.add(at).write(word) };
        });
        self.buffer.commit(out, Calls::LEN / 8)
    }

    /// Continues a chain by the frames that are in its hash, and tells of their functions.
    #[cold]
    #[inline(never)]
    fn go_on(&self, contexts: &Contexts, frames: &Frames, chain: &mut Chain, depth: usize) {
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

    /// Gives the memory back.
    pub(super) fn release_contexts(&self) {
        let contexts = self.contexts.replace(core::ptr::null_mut());
        if !contexts.is_null() {
            // SAFETY: nobody else knows it.
            unsafe { syscall::unmap(contexts.cast(), size_of::<Contexts>()) };
        }
    }
}
