use super::*;
use std::os::fd::IntoRawFd;

/// A signal handler that jumps out of `store` leaves what it was about to store.
#[test]
fn a_stage_is_written_once() {
    let path = std::env::temp_dir().join(format!("ompfuse-stage-{}", std::process::id()));
    let mut options = std::fs::File::options();
    let file = options.read(true).write(true).create(true).truncate(true);
    let file = file.open(&path).expect("a file can be made");
    let name = std::ffi::CString::new(path.as_os_str().as_encoded_bytes()).expect("a name");
    // SAFETY: numbers only.
    let header: ThreadHeader = unsafe { core::mem::zeroed() };
    let buffer = Buffer::new(file.into_raw_fd(), &name, header).expect("there is room");
    let words = 100;
    let store = || {
        let out = buffer.room(8 * words).expect("there is room");
        assert!(buffer.commit(out, words));
    };
    while buffer.flushed.get() == 0 {
        store();
    }
    let (flushed, at) = buffer.mark();
    assert_eq!((flushed, at), (STAGE as u64, 8 * words));
    while buffer.at.get() + 8 * words + PAD <= STAGE {
        store();
    }
    assert!(buffer.store());
    assert_eq!(buffer.mark(), (2 * STAGE as u64, 0));
    // A handler stores between a record's place and its end.
    let out = buffer.room(8 * words).expect("there is room");
    store();
    assert!(!buffer.commit(out, words));
    assert_eq!((buffer.mark(), buffer.lost()), ((2 * STAGE as u64, 0), 1));
    buffer.at.set(STAGE); // as if the last store had not come
    store();
    assert_eq!(buffer.mark(), (2 * STAGE as u64, 8 * words));
    assert_eq!(buffer.committed(), (2 * STAGE + 8 * words) as u64);
    std::fs::remove_file(&path).expect("it is still there");
}
