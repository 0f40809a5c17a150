//! Compiles small programs and takes *every* call, and nearly every instruction, for a site: what is patched in earnest
//! is a small part of that.
use ompfuse_format::Construct;
use ompfuse_format::abi::{NO_ARG, Probe};
use ompfuse_format::site::{BinaryInfo, Edge, HexAddress, Mechanism, Outcome, SiteInfo};
use ompfuse_rewriter::model::{Action, LinkVa, ProbeSpec, Scan, Site, Target, Window};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub(crate) struct Lab {
    pub(crate) dir: tempfile::TempDir,
}

pub(crate) struct Instruction {
    pub(crate) at: u64,
    pub(crate) len: u32,
    pub(crate) text: String,
}

impl Lab {
    pub(crate) fn new() -> Lab {
        Lab {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Compiles a source text. Without the compiler the kit says so, and fails in continuous integration.
    #[track_caller]
    pub(crate) fn compile(&self, name: &str, source: &str, command: &str) -> Option<PathBuf> {
        ompfuse_kit::compile::text(self.dir.path(), name, source, command)
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = self.path(name);
        std::fs::write(&path, bytes).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }
}

pub(crate) fn tool(name: &str, args: &[&str], file: &Path) -> String {
    let out = Command::new(name).args(args).arg(file).output().unwrap();
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{name} {args:?}: {errors}");
    assert!(errors.is_empty(), "{name} {args:?}: {errors}");
    String::from_utf8(out.stdout).unwrap()
}

pub(crate) fn run(program: &Path) -> Output {
    run_with(Command::new(program).env("OMP_NUM_THREADS", "4"))
}

/// Runs it once more where a compiler that another test started just then still holds the file open for writing.
pub(crate) fn run_with(command: &mut Command) -> Output {
    loop {
        match command.output() {
            Err(e) if e.kind() == std::io::ErrorKind::ExecutableFileBusy => {
                std::thread::yield_now()
            }
            done => return done.unwrap(),
        }
    }
}

/// Asserts that both print the same and end the same.
pub(crate) fn assert_same(original: &Path, patched: &Path) {
    let (a, b) = (run(original), run(patched));
    assert_eq!(
        String::from_utf8_lossy(&a.stderr),
        String::from_utf8_lossy(&b.stderr)
    );
    assert_eq!(
        String::from_utf8_lossy(&a.stdout),
        String::from_utf8_lossy(&b.stdout)
    );
    assert_eq!(a.status, b.status);
}

/// The instructions of `.text`.
pub(crate) fn disassemble(file: &Path) -> Vec<Instruction> {
    let text = tool("objdump", &["-d", "-w", "-j", ".text"], file);
    let line = |l: &str| {
        let mut fields = l.split('\t');
        let at = u64::from_str_radix(fields.next()?.trim().strip_suffix(':')?, 16).ok()?;
        let len = fields.next()?.split_whitespace().count() as u32;
        Some(Instruction {
            at,
            len,
            text: fields.next()?.trim().to_string(),
        })
    };
    text.lines().filter_map(line).collect()
}

fn is_call(i: &Instruction) -> bool {
    i.text.starts_with("call") || i.text.starts_with("addr32 call")
}

fn direct_target(i: &Instruction) -> Option<u64> {
    let mut words = i.text.split_whitespace();
    let mnemonic = words.next()?;
    let branch = mnemonic.starts_with('j') || mnemonic.starts_with("call");
    u64::from_str_radix(words.next()?, 16)
        .ok()
        .filter(|_| branch)
}

fn spec(probe: Probe) -> ProbeSpec {
    ProbeSpec {
        probe,
        args: [NO_ARG; 8],
        nargs: 2,
        width: 8,
        unsigned: false,
        param: 0,
        second: 0,
        chunks: false,
    }
}

fn call_action(i: &Instruction) -> Option<Action> {
    let (mnemonic, rest) = i.text.split_once(char::is_whitespace)?;
    let tail = match mnemonic {
        "call" => false,
        "jmp" => true,
        _ => return None,
    };
    let target = match i.len {
        5 => Target::Direct(LinkVa(direct_target(i)?)),
        6 if rest.trim().starts_with('*') && rest.contains("(%rip)") => {
            let slot = rest.split("# ").nth(1)?.split_whitespace().next()?;
            Target::Slot(LinkVa(u64::from_str_radix(slot, 16).ok()?))
        }
        _ => return None,
    };
    Some(Action::Call {
        len: i.len as u8,
        tail,
        relayed: false,
        target,
        probe: spec(Probe::Barrier),
    })
}

fn site(sites: &mut Vec<Site>, at: u64, action: Action) -> u32 {
    let id = sites.len() as u32;
    let info = SiteInfo {
        id,
        address: HexAddress(at),
        function: None,
        construct: Construct::Barrier,
        edge: Edge::Encloses,
        region: id,
        entry: None,
        mechanism: match action {
            Action::Call { .. } => Mechanism::CallSite,
            Action::Inline(_) => Mechanism::Inline,
        },
        outlined: None,
        source: None,
        frames: None,
        detail: None,
        outcome: Outcome::Patchable,
        reason: None,
    };
    sites.push(Site {
        info,
        action: Some(action),
        asks_threads: None,
        copies: false,
    });
    id
}

/// Every call in `.text` is a site, and with `inline` every stretch that a jump fits in a window.
pub(crate) fn scan(file: &Path, inline: bool) -> Scan {
    scan_as(file, inline, |_| 5)
}

/// The same; `least`: bytes that the n-th window needs.
pub(crate) fn scan_as(file: &Path, inline: bool, least: impl Fn(usize) -> u32) -> Scan {
    let code = disassemble(file);
    assert!(
        !code.is_empty(),
        "objdump shows no code of {}",
        file.display()
    );
    // In a static program the C library's own calls needn't keep to the calling convention.
    let whole = code.len() < 20_000;
    let mut sites = Vec::new();
    for i in &code {
        if let Some(action) = call_action(i)
            && (whole || i.text.contains("<GOMP_") || i.text.contains("<omp_"))
        {
            site(&mut sites, i.at, action);
        }
    }
    let windows = if inline && whole {
        windows(&code, &mut sites, least)
    } else {
        Vec::new()
    };
    let binary = BinaryInfo {
        path: file.file_name().unwrap().to_string_lossy().into_owned(),
        build_id: None,
        kind: "executable".into(),
        stripped: false,
        runtimes: Vec::new(),
        debug_files: None,
        loops_of: Vec::new(),
        settings: Default::default(),
        counted: None,
    };
    Scan {
        own_functions: Default::default(),
        binary,
        sites,
        windows,
        relays: Vec::new(),
        increments: Vec::new(),
        counting: Vec::new(),
    }
}

fn windows(
    code: &[Instruction],
    sites: &mut Vec<Site>,
    least: impl Fn(usize) -> u32,
) -> Vec<Window> {
    let mut entered: BTreeSet<u64> = code.iter().filter_map(direct_target).collect();
    entered.extend(
        code.iter()
            .filter(|i| is_call(i))
            .map(|i| i.at + u64::from(i.len)),
    );
    // Function entries that only data leads to.
    for i in code {
        if let Some(target) = i
            .text
            .split("# ")
            .nth(1)
            .and_then(|t| t.split_whitespace().next())
        {
            entered.extend(u64::from_str_radix(target, 16));
        }
        for word in i
            .text
            .split(['$', ',', ' '])
            .filter_map(|w| w.strip_prefix("0x"))
        {
            entered.extend(u64::from_str_radix(word, 16));
        }
    }
    let padding = |i: &Instruction| {
        ["nop", "int3", "xchg   %ax,%ax"]
            .iter()
            .any(|text| i.text.contains(text))
    };
    let mut windows = Vec::new();
    let mut at = 0;
    while at < code.len() {
        let mut end = at;
        let mut last = at;
        let mut len = 0;
        let least = least(windows.len());
        while len < least && end < code.len() {
            let i = &code[end];
            let through_stack = is_call(i) && i.text.contains("%rsp");
            if end > at && entered.contains(&i.at) || padding(i) || through_stack {
                break;
            }
            len += i.len;
            end += 1;
            // Code behind these is entered from elsewhere.
            last = end - 1;
            if i.text.starts_with("ret") || i.text.starts_with("jmp") {
                while len < least && end < code.len() && padding(&code[end]) {
                    len += code[end].len;
                    end += 1;
                }
                break;
            }
            if i.text.starts_with("hlt") || i.text.starts_with("ud2") {
                break;
            }
        }
        if len >= least {
            let places = [code[at].at, code[last].at];
            let ids = places.map(|p| site(sites, p, Action::Inline(spec(Probe::InlineEnd))));
            windows.push(Window {
                start: LinkVa(code[at].at),
                len,
                sites: ids.to_vec(),
                island: None,
            });
        }
        at = end.max(at + 1);
    }
    windows
}
