//! The simulated PMU as a plugin of qemu-user: what qemu tells is handed to `ompfuse_simpmu`, and the counts go into the page
//! that the program maps (`ompfuse_format::simulated`).
//!
//! `qemu-x86_64 -plugin libompfuse_simpmu.so,folder=/tmp/x,l1d=32/8 PROGRAM`
//!
//! Callbacks for system calls take no lock: a child process that is made meanwhile has only the thread that made it.
#![forbid(unsafe_code)]
// Only qemu has the functions that it calls: a test program of it could not be linked.
#![cfg(not(test))]

mod page;

use ompfuse_format::simulated::{CLAIM, OPTION, SLOTS};
use ompfuse_simpmu::Options;
use ompfuse_simpmu::code::Block;
use ompfuse_simpmu::modules::{Class, Modules};
use ompfuse_simpmu::vcpu::Vcpu;
use page::Pages;
use qemu_plugin::install::{Args, Info};
use qemu_plugin::plugin::{HasCallbacks, Register};
use qemu_plugin::{
    Error, MemRW, PluginId, Result, TranslationBlock, VCPUIndex,
    qemu_plugin_register_vcpu_syscall_cb, qemu_plugin_register_vcpu_syscall_ret_cb,
    qemu_plugin_register_vcpu_tb_trans_cb,
};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

// System calls of x86-64.
const MMAP: i64 = 9;
const MPROTECT: i64 = 10;
const MUNMAP: i64 = 11;
const MREMAP: i64 = 25;
const PRCTL: i64 = 157;
const PROT_EXEC: u64 = 4;

/// Everything, once there are options.
struct Simulator {
    options: Options,
    vcpus: Box<[OnceLock<Vcpu>]>,
    pages: Pages,
    modules: Mutex<Modules>,
    /// Executable mappings are being changed, and have been changed.
    changing: AtomicBool,
    changed: AtomicBool,
}

static SIMULATOR: OnceLock<Simulator> = OnceLock::new();

impl Simulator {
    /// The state of a virtual processor; `None`: more threads than there are slots.
    #[inline(always)]
    fn vcpu(&self, vcpu: VCPUIndex) -> Option<&Vcpu> {
        let place = self.vcpus.get(vcpu as usize)?;
        Some(match place.get() {
            Some(vcpu) => vcpu,
            None => place.get_or_init(|| Vcpu::new(&self.options)),
        })
    }

    #[inline]
    fn enter(&self, index: VCPUIndex, block: &Block) {
        let Some(vcpu) = self.vcpu(index) else { return };
        if vcpu.enter(block) {
            self.pages.publish(index as usize, &vcpu.counts());
        }
    }

    /// A thread wants a slot.
    fn claim(&self, index: VCPUIndex, owner: u64) {
        let Some(vcpu) = self.vcpu(index) else { return };
        vcpu.clear();
        self.pages.publish(index as usize, &vcpu.counts());
        self.pages.own(index as usize, owner);
    }

    fn class(&self, address: u64) -> Class {
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        if self.changed.swap(false, Ordering::AcqRel) {
            modules.forget();
        }
        modules.class(address)
    }
}

/// Has a block counted whenever it is executed.
fn translate(simulator: &'static Simulator, tb: &TranslationBlock<'_>) {
    let instructions: Vec<_> = tb.instructions().collect();
    let Some(first) = instructions.first() else {
        return;
    };
    let class = simulator.class(first.haddr());
    let code: Vec<_> = instructions.iter().map(|i| (i.vaddr(), i.data())).collect();
    let code = code.iter().map(|(address, bytes)| (*address, &bytes[..]));
    let mut accesses = Vec::new();
    let block = Arc::new(Block::decode(class, code, &mut accesses));
    tb.register_execute_callback(move |vcpu| simulator.enter(vcpu, &block));
    if matches!(class, Class::Loader | Class::Excluded) {
        return;
    }
    for (instruction, _) in instructions.iter().zip(accesses).filter(|(_, any)| *any) {
        let access = move |vcpu, info: qemu_plugin::MemoryInfo<'_>, address| {
            if let Some(vcpu) = simulator.vcpu(vcpu) {
                vcpu.access(address, 1 << info.size_shift(), info.is_store());
            }
        };
        instruction.register_memory_access_callback(access, MemRW::QEMU_PLUGIN_MEM_RW);
    }
}

/// What the crate wants; all is in the static above.
struct Plugin;

impl HasCallbacks for Plugin {}

impl Register for Plugin {
    fn register_default(&mut self, id: PluginId, args: &Args, _: &Info) -> Result<()> {
        let wrong = |message: String| Error::from(std::io::Error::other(message));
        let mut options = Options::default();
        let mut folder = None;
        for arg in &args.raw {
            match arg.strip_prefix("folder=") {
                Some(path) => folder = Some(PathBuf::from(path)),
                None => options.set(arg).map_err(wrong)?,
            }
        }
        let folder = folder.ok_or_else(|| wrong("folder=PATH is needed".to_owned()))?;
        let simulator = Simulator {
            options,
            vcpus: (0..SLOTS).map(|_| OnceLock::new()).collect(),
            pages: Pages::new(folder),
            modules: Mutex::default(),
            changing: AtomicBool::new(false),
            changed: AtomicBool::new(false),
        };
        let _ = SIMULATOR.set(simulator); // qemu installs a plugin once
        qemu_plugin_register_vcpu_tb_trans_cb(id, Some(on_translate))?;
        qemu_plugin_register_vcpu_syscall_cb(id, Some(on_syscall));
        qemu_plugin_register_vcpu_syscall_ret_cb(id, Some(on_return));
        Ok(())
    }
}

qemu_plugin::register!(Plugin);

extern "C" fn on_translate(_: PluginId, tb: *mut qemu_plugin::sys::qemu_plugin_tb) {
    if let Some(simulator) = SIMULATOR.get() {
        translate(simulator, &TranslationBlock::from(tb));
    }
}

#[allow(clippy::too_many_arguments, reason = "qemu's type")]
extern "C" fn on_syscall(
    _: PluginId,
    vcpu: VCPUIndex,
    number: i64,
    a1: u64,
    a2: u64,
    a3: u64,
    _: u64,
    _: u64,
    _: u64,
    _: u64,
    _: u64,
) {
    let Some(simulator) = SIMULATOR.get() else {
        return;
    };
    match number {
        PRCTL if a1 == OPTION && a2 == CLAIM => simulator.claim(vcpu, a3),
        MMAP | MPROTECT if a3 & PROT_EXEC != 0 => simulator.changing.store(true, Ordering::Release),
        MUNMAP | MREMAP => simulator.changing.store(true, Ordering::Release),
        _ => {}
    }
}

extern "C" fn on_return(_: PluginId, _: VCPUIndex, number: i64, _: i64) {
    if let (MMAP | MPROTECT | MUNMAP | MREMAP, Some(simulator)) = (number, SIMULATOR.get())
        && simulator.changing.load(Ordering::Acquire)
    {
        // Another thread's change may be under way still: it comes back here too.
        simulator.changed.store(true, Ordering::Release);
    }
}
