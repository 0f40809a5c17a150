//! The processor's own events, by the numbers in its manual.

use super::{Event, Kind};
use std::sync::Mutex;

/// Those that were asked for. They live as long as the process, as the others do.
static KNOWN: Mutex<Vec<&'static Event>> = Mutex::new(Vec::new());

/// The event that perf calls `rNNN`, with its number in hexadecimal digits: `perf_event_attr.config` as PERF_TYPE_RAW has it. Its
/// name has small letters and no zeros in front.
pub(super) fn find(name: &str) -> Option<&'static Event> {
    let digits = name.strip_prefix('r')?;
    // `from_str_radix` takes a sign too.
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let config = u64::from_str_radix(digits, 16).ok()?;
    // Not waited for: in a fork's child the thread that holds the lock may not exist.
    let mut known = KNOWN.try_lock().ok();
    let is_same = |e: &&Event| e.config == config;
    if let Some(event) = known
        .as_deref()
        .and_then(|k| k.iter().copied().find(is_same))
    {
        return Some(event);
    }
    let event: &'static Event = Box::leak(Box::new(Event {
        name: Box::leak(format!("r{config:x}").into_boxed_str()),
        alias: "",
        kind: Kind::Raw,
        config,
        in_kernel: false,
        what: "the processor's event of this number",
    }));
    if let Some(known) = &mut known {
        known.push(event);
    }
    Some(event)
}

#[cfg(test)]
mod tests {
    use super::super::{find, is_hardware};
    use super::*;

    #[test]
    fn numbers_are_events() {
        let event = find("r00C0").expect("it is a number");
        assert_eq!(
            (event.name, event.kind, event.config),
            ("rc0", Kind::Raw, 0xc0)
        );
        assert!(std::ptr::eq(event, find("rc0").expect("it is a number")));
        assert_eq!(find("rffffffffffffffff").map(|e| e.config), Some(u64::MAX));
        assert!(is_hardware("r1"));
        for name in ["r", "r+1", "r1g", "r10000000000000000", "R1", " r1"] {
            assert_eq!(find(name), None, "{name}");
        }
    }
}
