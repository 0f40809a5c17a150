//! What a lock is called.

use ompfuse_account::from_summary::critical_name;
use ompfuse_account::model::{Lock, LockKind};

/// A lock by its critical sections' name, its variable, or else its address.
pub(crate) fn lock(lock: &Lock) -> String {
    let symbol = lock.symbol.as_deref();
    if lock.kind == LockKind::UnnamedCritical {
        return "critical without a name".to_owned();
    }
    if let Some(name) = symbol.and_then(critical_name) {
        return format!("critical {name}");
    }
    let file = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    match (symbol, &lock.module, lock.address) {
        (Some(symbol), ..) => match (&lock.member, lock.offset.unwrap_or(0)) {
            (Some(member), _) => format!("{symbol}{member}"),
            (None, 0) => symbol.to_owned(),
            (None, offset) => format!("{symbol}+{offset:#x}"),
        },
        (None, Some(module), Some(address)) => format!("{}+{address:#x}", file(module)),
        (None, _, Some(address)) => format!("memory at {address:#x}"),
        (None, ..) => "address not known".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ompfuse_account::model::Mutex;

    #[test]
    fn locks_have_their_names() {
        let of = |kind, symbol: Option<&str>, offset, module: Option<&str>, address| {
            lock(&Lock {
                kind,
                symbol: symbol.map(str::to_owned),
                offset,
                member: None,
                module: module.map(str::to_owned),
                address,
                process: None,
                regions: vec![],
                threads: 1,
                times: Mutex::default(),
            })
        };
        let file = Some("/bin/lu.x");
        use LockKind::{Critical, Lock as OmpLock, UnnamedCritical};
        let gcc = Some(".gomp_critical_user_update");
        let clang = Some(".gomp_critical_user_update.var");
        for symbol in [gcc, clang] {
            let name = of(Critical, symbol, Some(0), file, Some(0x4040));
            assert_eq!(name, "critical update");
        }
        let name = of(UnnamedCritical, None, None, None, None);
        assert_eq!(name, "critical without a name");
        let name = of(OmpLock, Some("locks"), Some(24), file, Some(0x4058));
        assert_eq!(name, "locks+0x18");
        let name = of(OmpLock, None, None, file, Some(0x4058));
        assert_eq!(name, "lu.x+0x4058");
        let name = of(OmpLock, None, None, None, Some(0x7f00));
        assert_eq!(name, "memory at 0x7f00");
    }
}
