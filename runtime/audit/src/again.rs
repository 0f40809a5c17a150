//! The process begins once more, with another environment. Nothing of its program has run yet, so nobody notices.

use crate::session;
use core::ffi::{CStr, c_char};
use core::fmt;
use core::ptr::null;
use ompfuse_format::run::AUDIT_LIBRARY;
use ompfuse_format::simulated::ENV_SIMULATED;
use std::ffi::{CString, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Variable with the C library's settings.
const TUNABLES: &str = "GLIBC_TUNABLES";
/// The setting that gives more room, in bytes.
const ROOM: &str = "glibc.rtld.optional_static_tls";
/// What it is by default.
const DEFAULT_ROOM: usize = 512;
/// The name that a program was started by (elf.h).
const AT_EXECFN: libc::c_ulong = 31;
/// Variable with libraries that watch the loader.
const AUDIT: &str = "LD_AUDIT";

/// Bytes that were asked for in each thread for thread-local variables of libraries.
pub(crate) fn room() -> usize {
    let settings = std::env::var_os(TUNABLES).unwrap_or_default();
    let settings = settings.to_string_lossy();
    let values = settings.split(':').filter_map(|s| s.split_once('='));
    let room = values.rev().find(|(name, _)| *name == ROOM);
    let number = room.and_then(|(_, value)| match value.strip_prefix("0x") {
        Some(digits) => usize::from_str_radix(digits, 16).ok(),
        None => value.parse().ok(),
    });
    number.unwrap_or(DEFAULT_ROOM)
}

/// Once more, with this room. Returns if that can't be.
pub(crate) fn with_room(bytes: usize) {
    if is_simulated() || !has_setting() {
        return;
    }
    let users = std::env::var_os(TUNABLES).unwrap_or_default().into_vec();
    let is_other = |setting: &&[u8]| {
        let is_it = setting
            .strip_prefix(ROOM.as_bytes())
            .is_some_and(|rest| rest.starts_with(b"="));
        !setting.is_empty() && !is_it
    };
    let own = format!("{ROOM}={bytes}");
    let mut settings: Vec<&[u8]> = users.split(|&b| b == b':').filter(is_other).collect();
    settings.push(own.as_bytes());
    begin(TUNABLES, Some(OsString::from_vec(settings.join(&b':'))));
}

/// Once more, without this library, which is said. Returns if that can't be.
pub(crate) fn without_audit(why: fmt::Arguments) {
    if is_simulated() {
        return;
    }
    let Some(program) = program() else { return };
    if let Some(session) = session::get() {
        session.note_aside(&program, why);
    }
    let libraries = std::env::var_os(AUDIT).unwrap_or_default().into_vec();
    let is_other = |library: &&[u8]| !library.ends_with(AUDIT_LIBRARY.as_bytes());
    let others: Vec<&[u8]> = libraries.split(|&b| b == b':').filter(is_other).collect();
    let others = others.join(&b':');
    begin(
        AUDIT,
        (!others.is_empty()).then(|| OsString::from_vec(others)),
    );
}

/// Whether a simulator executes the program: it would stay behind. The command has asked for room then.
fn is_simulated() -> bool {
    std::env::var_os(ENV_SIMULATED).is_some()
}

/// Whether the C library has the setting: it came with version 2.33.
fn has_setting() -> bool {
    // SAFETY: a string for ever.
    let version = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) }.to_string_lossy();
    let mut numbers = version.split('.').map(|n| n.parse::<u32>().unwrap_or(0));
    (numbers.next(), numbers.next()) >= (Some(2), Some(33))
}

/// The file of the process's program, under the name that it was started by if it is that of the file.
fn program() -> Option<PathBuf> {
    let file = std::fs::read_link("/proc/self/exe").ok()?;
    // SAFETY: a number, or the address of a string for ever.
    let name = unsafe { libc::getauxval(AT_EXECFN) } as *const c_char;
    if name.is_null() {
        return Some(file);
    }
    // SAFETY: as above.
    let name = Path::new(std::ffi::OsStr::from_bytes(
        unsafe { CStr::from_ptr(name) }.to_bytes(),
    ));
    let identity = |path: &Path| path.metadata().ok().map(|m| (m.dev(), m.ino()));
    // Of a script the name is the script's.
    let same = identity(name).is_some() && identity(name) == identity(&file);
    Some(if same { name.to_owned() } else { file })
}

/// The process begins again with a variable changed.
fn begin(variable: &str, value: Option<OsString>) {
    let text = |bytes: Vec<u8>| CString::new(bytes).ok();
    let Some(program) = program().and_then(|p| text(p.into_os_string().into_vec())) else {
        return;
    };
    // Not as this library was told them: the loader, started by itself with a program's name, has left out its own.
    let Ok(arguments) = std::fs::read("/proc/self/cmdline") else {
        return;
    };
    let arguments = arguments.strip_suffix(&[0]).unwrap_or(&arguments);
    let arguments: Vec<_> = arguments
        .split(|&b| b == 0)
        .filter_map(|a| text(a.to_vec()))
        .collect();
    let others = std::env::vars_os().filter(|(name, _)| name != variable);
    let new = value.map(|value| (OsString::from(variable), value));
    let environment: Vec<_> = others
        .chain(new)
        .filter_map(|(name, value)| text([name.as_bytes(), b"=", value.as_bytes()].concat()))
        .collect();
    let list = |strings: &[CString]| -> Vec<_> {
        strings.iter().map(|s| s.as_ptr()).chain([null()]).collect()
    };
    // SAFETY: both lists end with a null pointer, and their strings outlive the call.
    unsafe {
        libc::execve(
            program.as_ptr(),
            list(&arguments).as_ptr(),
            list(&environment).as_ptr(),
        )
    };
}
