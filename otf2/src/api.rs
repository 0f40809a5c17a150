//! The C library: found, loaded once, and never unloaded.

use crate::Error;
use libloading::Library as Loaded;
use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Names by which the dynamic linker may know version 3 of the library: Debian's, and that of its own build system. Other versions have
/// other functions.
const NAMES: [&str; 2] = ["libopen-trace-format2.so.10", "libotf2.so.10"];

/// `OTF2_SUCCESS`.
const SUCCESS: i32 = 0;

/// The first error that the library has met; 0: none. What a later function returns often says less.
static FIRST_ERROR: AtomicI32 = AtomicI32::new(SUCCESS);

static LOADED: OnceLock<Result<Api, Error>> = OnceLock::new();

/// See [`Library::on_error`].
type OnError = Box<dyn Fn(&str) + Send>;
static ON_ERROR: Mutex<Option<OnError>> = Mutex::new(None);

macro_rules! opaque {
    ($($name:ident)*) => {$(
        /// Of the library; only pointers to it are handed around.
        #[repr(C)]
        pub(crate) struct $name {
            nothing: [u8; 0],
        }
    )*};
}

opaque!(RawArchive RawEvents RawDefinitions RawLocalDefinitions RawAttributes);

/// `OTF2_FlushCallbacks`.
#[repr(C)]
pub(crate) struct FlushCallbacks {
    pub(crate) before: extern "C" fn(*mut c_void, u8, u64, *mut c_void, bool) -> u8,
    /// Left out: then no event says that the writer was interrupted, which nothing was.
    pub(crate) after: Option<extern "C" fn(*mut c_void, u8, u64) -> u64>,
}

type Complain = extern "C" fn(
    *mut c_void,
    *const c_char,
    u64,
    *const c_char,
    i32,
    *const c_char,
    // A `va_list`, which is a pointer as an argument (System V ABI for x86-64, 3.5.7). It is not looked at.
    *mut c_void,
) -> i32;

macro_rules! api {
    ($($name:ident: $symbol:literal ($($argument:ty),*) -> $result:ty;)*) => {
        /// The functions that are used.
        pub(crate) struct Api {
            $(pub(crate) $name: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl Api {
            /// Looks all of them up.
            ///
            /// # Safety
            /// The library is version 3 of OTF2's, and stays loaded.
            unsafe fn of(library: &Loaded) -> Result<Api, libloading::Error> {
                Ok(Api {$(
                    // SAFETY: the function has this type in version 3 (`OTF2_*.h`).
                    $name: *unsafe {
                        library.get::<unsafe extern "C" fn($($argument),*) -> $result>(
                            concat!("OTF2_", $symbol, "\0").as_bytes(),
                        )
                    }?,
                )*})
            }
        }
    };
}

// Every enumeration of the format is the unsigned integer that its `typedef` says; error codes are a C `enum` with negative values.
api! {
    describe: "Error_GetDescription" (i32) -> *const c_char;
    on_error: "Error_RegisterCallback" (Option<Complain>, *mut c_void) -> Option<Complain>;

    open: "Archive_Open" (*const c_char, *const c_char, u8, u64, u64, u8, u8) -> *mut RawArchive;
    close: "Archive_Close" (*mut RawArchive) -> i32;
    set_flush: "Archive_SetFlushCallbacks" (*mut RawArchive, *const FlushCallbacks, *mut c_void) -> i32;
    set_serial: "Archive_SetSerialCollectiveCallbacks" (*mut RawArchive) -> i32;
    set_creator: "Archive_SetCreator" (*mut RawArchive, *const c_char) -> i32;
    set_description: "Archive_SetDescription" (*mut RawArchive, *const c_char) -> i32;
    set_machine: "Archive_SetMachineName" (*mut RawArchive, *const c_char) -> i32;
    open_events: "Archive_OpenEvtFiles" (*mut RawArchive) -> i32;
    close_events: "Archive_CloseEvtFiles" (*mut RawArchive) -> i32;
    open_local: "Archive_OpenDefFiles" (*mut RawArchive) -> i32;
    close_local: "Archive_CloseDefFiles" (*mut RawArchive) -> i32;
    events: "Archive_GetEvtWriter" (*mut RawArchive, u64) -> *mut RawEvents;
    end_events: "Archive_CloseEvtWriter" (*mut RawArchive, *mut RawEvents) -> i32;
    local: "Archive_GetDefWriter" (*mut RawArchive, u64) -> *mut RawLocalDefinitions;
    end_local: "Archive_CloseDefWriter" (*mut RawArchive, *mut RawLocalDefinitions) -> i32;
    definitions: "Archive_GetGlobalDefWriter" (*mut RawArchive) -> *mut RawDefinitions;

    clock: "GlobalDefWriter_WriteClockProperties" (*mut RawDefinitions, u64, u64, u64, u64) -> i32;
    paradigm: "GlobalDefWriter_WriteParadigm" (*mut RawDefinitions, u8, u32, u8) -> i32;
    string: "GlobalDefWriter_WriteString" (*mut RawDefinitions, u32, *const c_char) -> i32;
    attribute: "GlobalDefWriter_WriteAttribute" (*mut RawDefinitions, u32, u32, u32, u8) -> i32;
    system: "GlobalDefWriter_WriteSystemTreeNode" (*mut RawDefinitions, u32, u32, u32, u32) -> i32;
    domain: "GlobalDefWriter_WriteSystemTreeNodeDomain" (*mut RawDefinitions, u32, u8) -> i32;
    location_group: "GlobalDefWriter_WriteLocationGroup" (*mut RawDefinitions, u32, u32, u8, u32, u32) -> i32;
    location: "GlobalDefWriter_WriteLocation" (*mut RawDefinitions, u64, u32, u8, u64, u32) -> i32;
    region: "GlobalDefWriter_WriteRegion"
        (*mut RawDefinitions, u32, u32, u32, u32, u8, u8, u32, u32, u32, u32) -> i32;
    group: "GlobalDefWriter_WriteGroup" (*mut RawDefinitions, u32, u32, u8, u8, u32, u32, *const u64) -> i32;
    comm: "GlobalDefWriter_WriteComm" (*mut RawDefinitions, u32, u32, u32, u32, u32) -> i32;
    metric_member: "GlobalDefWriter_WriteMetricMember"
        (*mut RawDefinitions, u32, u32, u32, u8, u8, u8, u8, i64, u32) -> i32;
    metric_class: "GlobalDefWriter_WriteMetricClass" (*mut RawDefinitions, u32, u8, *const u32, u8, u8) -> i32;

    attributes: "AttributeList_New" () -> *mut RawAttributes;
    add_string: "AttributeList_AddStringRef" (*mut RawAttributes, u32, u32) -> i32;
    add_number: "AttributeList_AddUint64" (*mut RawAttributes, u32, u64) -> i32;

    number_of_events: "EvtWriter_GetNumberOfEvents" (*mut RawEvents, *mut u64) -> i32;
    enter: "EvtWriter_Enter" (*mut RawEvents, *mut RawAttributes, u64, u32) -> i32;
    leave: "EvtWriter_Leave" (*mut RawEvents, *mut RawAttributes, u64, u32) -> i32;
    metric: "EvtWriter_Metric"
        (*mut RawEvents, *mut RawAttributes, u64, u32, u8, *const u8, *const u64) -> i32;
    fork: "EvtWriter_ThreadFork" (*mut RawEvents, *mut RawAttributes, u64, u8, u32) -> i32;
    join: "EvtWriter_ThreadJoin" (*mut RawEvents, *mut RawAttributes, u64, u8) -> i32;
    team_begin: "EvtWriter_ThreadTeamBegin" (*mut RawEvents, *mut RawAttributes, u64, u32) -> i32;
    team_end: "EvtWriter_ThreadTeamEnd" (*mut RawEvents, *mut RawAttributes, u64, u32) -> i32;
    acquire: "EvtWriter_ThreadAcquireLock" (*mut RawEvents, *mut RawAttributes, u64, u8, u32, u32) -> i32;
    release: "EvtWriter_ThreadReleaseLock" (*mut RawEvents, *mut RawAttributes, u64, u8, u32, u32) -> i32;
    task_create: "EvtWriter_ThreadTaskCreate" (*mut RawEvents, *mut RawAttributes, u64, u32, u32, u32) -> i32;
    task_switch: "EvtWriter_ThreadTaskSwitch" (*mut RawEvents, *mut RawAttributes, u64, u32, u32, u32) -> i32;
    task_complete: "EvtWriter_ThreadTaskComplete" (*mut RawEvents, *mut RawAttributes, u64, u32, u32, u32) -> i32;
}

/// OTF2's C library, loaded.
#[derive(Clone, Copy)]
pub struct Library(pub(crate) &'static Api);

impl std::fmt::Debug for Library {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Library")
    }
}

impl Library {
    /// Loads it, if it isn't yet.
    ///
    /// # Errors
    /// [`Error::Missing`] if it is not installed, [`Error::Unusable`] if it lacks a function.
    pub fn load() -> Result<Library, Error> {
        let loaded = LOADED.get_or_init(|| load(&NAMES));
        loaded.as_ref().map(Library).map_err(Clone::clone)
    }

    /// From now on this is called with the reason as soon as the library meets an error, before it goes on. Who writes files should not
    /// return from there: version 3.0.2 crashes behind a chunk that it could not write, as on a full disk. `None`: nothing is called.
    pub fn on_error(self, act: Option<OnError>) {
        *ON_ERROR.lock().unwrap_or_else(PoisonError::into_inner) = act;
    }
}

fn load(names: &[&str]) -> Result<Api, Error> {
    let found = names.iter().find_map(|&name| {
        // SAFETY: loading executes the library's constructors, of which OTF2's has none.
        Some((name, unsafe { Loaded::new(name) }.ok()?))
    });
    let (name, library) = found.ok_or(Error::Missing)?;
    // Pointers to its functions live as long as the process.
    let library: &'static Loaded = Box::leak(Box::new(library));
    // SAFETY: both names end with the number of version 3's binary interface, and it is never unloaded.
    let api = unsafe { Api::of(library) }.map_err(|e| Error::Unusable {
        file: name.to_owned(),
        reason: e.to_string(),
    })?;
    // SAFETY: the callback has the type that is asked for, and needs no data.
    unsafe { (api.on_error)(Some(note), std::ptr::null_mut()) };
    Ok(api)
}

/// Instead of printing. What is less than an error has a negative code.
extern "C" fn note(
    _: *mut c_void,
    _: *const c_char,
    _: u64,
    _: *const c_char,
    code: i32,
    _: *const c_char,
    _: *mut c_void,
) -> i32 {
    if code > SUCCESS {
        let _ = FIRST_ERROR.compare_exchange(SUCCESS, code, Ordering::Relaxed, Ordering::Relaxed);
        let act = ON_ERROR.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(act), Some(Ok(api))) = (&*act, LOADED.get()) {
            act(&api.error(code).to_string());
        }
    }
    code
}

impl Api {
    /// What a function has returned, as a result.
    pub(crate) fn check(&self, code: i32) -> Result<(), Error> {
        match code {
            SUCCESS => Ok(()),
            code => Err(self.error(code)),
        }
    }

    /// The same of one that returns a pointer.
    pub(crate) fn pointer<T>(&self, pointer: *mut T) -> Result<std::ptr::NonNull<T>, Error> {
        std::ptr::NonNull::new(pointer).ok_or_else(|| self.error(SUCCESS))
    }

    /// `code`: what is said where no error was noted.
    fn error(&self, code: i32) -> Error {
        let first = FIRST_ERROR.swap(SUCCESS, Ordering::Relaxed);
        let code = if first == SUCCESS { code } else { first };
        // SAFETY: any number may be asked for; the text is a constant of the library.
        let text = unsafe { (self.describe)(code) };
        if text.is_null() || code == SUCCESS {
            return Error::Refused("OTF2's library gives no reason".to_owned());
        }
        // SAFETY: a C string of the library's, which is never unloaded.
        let text = unsafe { CStr::from_ptr(text) };
        Error::Refused(text.to_string_lossy().into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_not_there_is_asked_for() {
        let error = load(&["libopen-trace-format2.so.none"]).err();
        assert_eq!(error, Some(Error::Missing));
        assert_eq!(
            Error::Missing.to_string(),
            "libopen-trace-format2 is not installed; apt-get install libopen-trace-format2-10"
        );
    }

    #[test]
    fn another_library_is_refused() {
        let error = load(&["libc.so.6"]).err().unwrap().to_string();
        assert!(error.starts_with("libc.so.6 cannot be used: "), "{error}");
    }
}
