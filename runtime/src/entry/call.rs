//! A call of the program as it arrives here, and how it goes on to the original target.

use super::invoke::invoke;
use super::site::constants;
use crate::unwind::Caller;
use core::ptr::addr_of;
use ompfuse_format::abi::{FLAG_INDIRECT, MANY_ARGUMENTS, MOST_ARGUMENTS, NO_ARG, SiteDesc};

/// What the original callee would have seen; built by the thunks.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Call {
    regs: [u64; 6],
    rax: u64,
    site: *const SiteDesc,
    rbp: u64,
    return_address: u64,
    /// First of the stack arguments; the others follow.
    stack: [u64; 0],
}

impl Call {
    /// The site that control came from.
    #[inline(always)]
    pub(crate) fn site(&self) -> &'static SiteDesc {
        // SAFETY: the stub has put the address of its site into r10; sites stay as long as their module, whose code
        // is running.
        unsafe { &*self.site }
    }

    /// The program's stack pointer at the call: what it has on its stack lies above.
    #[inline(always)]
    pub(crate) fn stack_pointer(&self) -> usize {
        addr_of!(self.return_address) as usize
    }

    /// Where it comes from, for who follows the callers.
    #[inline(always)]
    pub(crate) fn caller(&self) -> Caller {
        Caller {
            address: self.return_address,
            sp: addr_of!(self.stack) as usize,
            bp: self.rbp as usize,
        }
    }

    /// Argument by position.
    #[inline(always)]
    pub(crate) fn arg(&self, position: usize) -> u64 {
        match self.regs.get(position) {
            Some(&reg) => reg,
            // SAFETY: the pattern tables say that the target takes this argument, so its caller has put it there.
            None => unsafe { addr_of!(self.stack).cast::<u64>().add(position - 6).read() },
        }
    }

    /// The argument that the probe's kind documents as its `nth`, if the entry point has it.
    #[inline(always)]
    pub(crate) fn known(&self, nth: usize) -> Option<u64> {
        let position = self.site().args[nth];
        if position == NO_ARG {
            return None;
        }
        match self.regs.get(usize::from(position)) {
            Some(&reg) => Some(reg),
            None => Some(self.on_stack(usize::from(position))),
        }
    }

    /// As [`Call::arg`], apart: most are in registers.
    #[inline(never)]
    fn on_stack(&self, position: usize) -> u64 {
        self.arg(position)
    }

    /// As [`Call::known`], of an argument that is not in a register as a rule.
    #[inline(always)]
    pub(crate) fn known_late(&self, nth: usize) -> Option<u64> {
        let position = self.site().args[nth];
        (position != NO_ARG).then(|| self.arg(usize::from(position)))
    }

    /// Address of the original target.
    #[inline(always)]
    pub(crate) fn target(&self) -> usize {
        let site = self.site();
        let address = (addr_of!(site.target_rel) as usize).wrapping_add(site.target_rel as usize);
        if site.flags & FLAG_INDIRECT != 0 {
            // SAFETY: the module's GOT slot that the original instruction would have read.
            return unsafe { (address as *const usize).read() };
        }
        address
    }

    /// Calls the original target as the program did.
    #[inline(always)]
    pub(crate) fn forward(&self) -> u64 {
        // SAFETY: the arguments are the program's own.
        unsafe { self.forward_with(&self.regs) }
    }

    /// As [`Call::forward`], of a call that may have any number of arguments.
    #[inline(always)]
    pub(crate) fn forward_any(&self) -> u64 {
        match self.site().nargs() {
            MANY_ARGUMENTS => self.forward_many(),
            _ => self.forward(),
        }
    }

    /// Calls the original target with more arguments than other calls have: the site's constants say how many.
    #[cold]
    #[inline(never)]
    fn forward_many(&self) -> u64 {
        let mut rest = [0; MOST_ARGUMENTS as usize - 2];
        let count = usize::try_from(constants(self.site()).param).unwrap_or(0);
        let rest = &mut rest[..count.clamp(2, MOST_ARGUMENTS.into()) - 2];
        for (at, word) in rest.iter_mut().enumerate() {
            *word = self.arg(2 + at);
        }
        let [first, second] = [self.regs[0], self.regs[1]];
        // SAFETY: the target is the function that the program called, with its arguments.
        unsafe {
            invoke(
                self.target() as u64,
                first,
                second,
                rest.len(),
                rest.as_ptr(),
            )
        }
    }

    /// As [`Call::forward_with`], of calls with up to 14 arguments: MPI's.
    ///
    /// # Safety
    /// As there.
    #[inline(never)]
    unsafe fn forward_longest(&self, r: &[u64; 6]) -> u64 {
        type F8 = unsafe extern "C-unwind" fn(
            u64,
            u64,
            u64,
            u64,
            u64,
            u64,
            u64,
            u64,
            u64,
            u64,
            u64,
            u64,
            u64,
            u64,
        ) -> u64;
        let s = |n: usize| self.arg(6 + n);
        // SAFETY: as in `forward_with`.
        unsafe {
            let f = core::mem::transmute::<usize, F8>(self.target());
            f(
                r[0],
                r[1],
                r[2],
                r[3],
                r[4],
                r[5],
                s(0),
                s(1),
                s(2),
                s(3),
                s(4),
                s(5),
                s(6),
                s(7),
            )
        }
    }

    /// As [`Call::forward`], where nothing is recorded: apart, so that its registers needn't be saved where something is.
    #[inline(never)]
    pub(crate) fn forward_only(&self) -> u64 {
        self.forward_any()
    }

    /// The arguments in registers, to be changed and handed to [`Call::forward_with`].
    pub(crate) fn regs(&self) -> [u64; 6] {
        self.regs
    }

    /// Calls the original target with other register arguments; those on the stack are the program's.
    ///
    /// # Safety
    /// The arguments must mean to the target what the program's meant.
    #[inline(always)]
    pub(crate) unsafe fn forward_with(&self, r: &[u64; 6]) -> u64 {
        type F0 = unsafe extern "C-unwind" fn(u64, u64, u64, u64, u64, u64) -> u64;
        type F3 = unsafe extern "C-unwind" fn(u64, u64, u64, u64, u64, u64, u64, u64, u64) -> u64;
        type F6 = unsafe extern "C-unwind" fn(
            u64,
            u64,
            u64,
            u64,
            u64,
            u64,
            u64,
            u64,
            u64,
            u64,
            u64,
            u64,
        ) -> u64;
        let target = self.target();
        let s = |n: usize| self.arg(6 + n);
        // SAFETY: the target is the function that the program called; integer arguments that it doesn't take are
        // ignored by it, and reading stack words above a call's arguments reads the caller's frame, which exists.
        unsafe {
            match self.site().nargs() {
                0..=6 => {
                    core::mem::transmute::<usize, F0>(target)(r[0], r[1], r[2], r[3], r[4], r[5])
                }
                7..=9 => {
                    let f = core::mem::transmute::<usize, F3>(target);
                    f(r[0], r[1], r[2], r[3], r[4], r[5], s(0), s(1), s(2))
                }
                13.. => self.forward_longest(r),
                _ => {
                    let f = core::mem::transmute::<usize, F6>(target);
                    f(
                        r[0],
                        r[1],
                        r[2],
                        r[3],
                        r[4],
                        r[5],
                        s(0),
                        s(1),
                        s(2),
                        s(3),
                        s(4),
                        s(5),
                    )
                }
            }
        }
    }
}
