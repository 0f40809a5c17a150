//! Every form that an ELF file with OpenMP in it can have: the same sites are found as in the ordinary build, the patched
//! file behaves as the original, and what it did is on record.
//!
//! A form is a shell script that makes `program` (and `libwork.so`, if that is what is patched) out of `fixtures/kinds`,
//! with `CC` (the compiler and its flags) and `S` (the fixture's folder) in its environment.

mod edited;
mod separate;

use ompfuse_tests::fixture;
use ompfuse_tests::process::{self, Output};
use ompfuse_tests::scan::Scan;
use ompfuse_tests::{command, has, repository, table};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

const GCC: &str = "gcc -O2 -g -fopenmp";
const CLANG: &str = "clang-19 -O2 -g -fopenmp";

/// Whatever isn't said otherwise.
const ORDINARY: &str = "$CC -fPIE -pie $S/main.c $S/work.c -o program";

/// A stand-in for libgomp at link time: its symbols without versions, and with type `TYPE`.
const STAND_IN: &str = "
    nm -D --defined-only $(gcc -print-file-name=libgomp.so.1) | sed -n 's/.* [TW] \\([A-Za-z_]*\\)@.*/\\1/p' | sort -u \
        | sed 's/.*/.globl &\\n&:/' > stand-in.s
    sed -i '1i .text' stand-in.s
    [ -z \"$TYPE\" ] || sed -n 's/.globl \\(.*\\)/.type \\1,@function/p' stand-in.s >> stand-in.s
    mkdir stand-in && gcc -shared -nostdlib stand-in.s -Wl,-soname,$NAME -o stand-in/libgomp.so";

/// Runs a script in a folder; `None`, and said so, where a tool that it needs is missing.
fn script(folder: &Path, compiler: &str, text: &str, tools: &[&str]) -> Option<()> {
    let compiler_name = compiler.split(' ').next().expect("a compiler has a name");
    for tool in tools.iter().chain([&compiler_name]) {
        if !has(tool) {
            return None;
        }
    }
    let mut shell = Command::new("sh");
    shell
        .args(["-euc", text])
        .current_dir(folder)
        .env("CC", compiler)
        .env("S", repository().join("fixtures/kinds"))
        .env("LC_ALL", "C");
    process::run(&mut shell).ok(text);
    Some(())
}

fn run(program: &Path, args: &[&str]) -> Output {
    process::run(process::clean(&mut Command::new(program), 2).args(args))
}

/// How often which runtime function is called, how the calls are patched, and with `lines` where they stand.
fn sites(scan: &Scan, lines: bool) -> BTreeMap<(String, String, String, Option<u32>), usize> {
    let mut sites = BTreeMap::new();
    for s in &scan.sites {
        let entry = s.entry.clone().unwrap_or_default();
        let line = s.source.as_ref().map(|s| s.line).filter(|_| lines);
        let what = (s.construct.clone(), entry, s.outcome.clone(), line);
        *sites.entry(what).or_default() += 1;
    }
    sites
}

/// The scan of the ordinary build.
fn ordinary(compiler: &'static str) -> Option<&'static Scan> {
    static GCC_SCAN: OnceLock<Option<Scan>> = OnceLock::new();
    static CLANG_SCAN: OnceLock<Option<Scan>> = OnceLock::new();
    let of = if compiler == GCC {
        &GCC_SCAN
    } else {
        &CLANG_SCAN
    };
    let scan = of.get_or_init(|| {
        let folder = tempfile::tempdir().expect("there is room for a program");
        script(folder.path(), compiler, ORDINARY, &[])?;
        Some(Scan::of(&folder.path().join("program")))
    });
    if let Some(scan) = scan {
        assert!(scan.sites.len() > 8, "{:?}", scan.sites);
    }
    scan.as_ref()
}

/// A form to test.
struct Form {
    name: &'static str,
    compilers: &'static [&'static str],
    script: &'static str,
    tools: &'static [&'static str],
    args: &'static [&'static str],
    /// Debug information is in it.
    lines: bool,
}

const BOTH: &[&str] = &[GCC, CLANG];

const fn form(name: &'static str, script: &'static str) -> Form {
    Form {
        name,
        compilers: BOTH,
        script,
        tools: &[],
        args: &[],
        lines: true,
    }
}

impl Form {
    const fn by(self, compilers: &'static [&'static str]) -> Form {
        Form { compilers, ..self }
    }

    const fn with(self, tools: &'static [&'static str]) -> Form {
        Form { tools, ..self }
    }

    const fn args(self, args: &'static [&'static str]) -> Form {
        Form { args, ..self }
    }

    const fn without_lines(self) -> Form {
        Form {
            lines: false,
            ..self
        }
    }

    fn check(&self) {
        for compiler in self.compilers {
            let folder = tempfile::tempdir().expect("there is room for a program");
            let Some(ordinary) = ordinary(compiler) else {
                continue;
            };
            let ordinary = sites(ordinary, self.lines);
            let stand_in = self.script.replace("STAND_IN", STAND_IN);
            if script(folder.path(), compiler, &stand_in, self.tools).is_none() {
                continue;
            }
            let what = format!("{} ({compiler})", self.name);
            let scan = self.patched(&what, folder.path());
            assert_eq!(sites(&scan, self.lines), ordinary, "sites of {what}");
        }
    }

    /// Patches what was built, and compares. The result is the original's scan.
    #[track_caller]
    fn patched(&self, what: &str, folder: &Path) -> Scan {
        let library = folder.join("libwork.so");
        let binary = if library.exists() {
            library
        } else {
            folder.join("program")
        };
        let scan = Scan::of(&binary);
        let original = run(&folder.join("program"), self.args).ok(what);
        for dormant in [false, true] {
            let copy = tempfile::tempdir().expect("there is room for a patched program");
            for file in std::fs::read_dir(folder).expect("a folder can be listed") {
                let file = file.expect("a folder can be listed").path();
                if file.is_file() {
                    let to = copy
                        .path()
                        .join(file.file_name().expect("a file has a name"));
                    std::fs::copy(&file, &to).expect("a file can be copied");
                }
            }
            let out = copy
                .path()
                .join(binary.file_name().expect("a file has a name"));
            let program = copy.path().join("program");
            let mut args = vec![Path::new("patch"), &binary, Path::new("-o"), &out];
            if dormant {
                args.push(Path::new("--dormant"));
            }
            command::ok(args);
            command::ok([Path::new("verify"), &binary, &out]);
            assert_eq!(
                run(&program, self.args).outcome(),
                original.outcome(),
                "{what}, dormant {dormant}"
            );
            if out == program {
                recorded(what, &program, self.args, &original);
            }
        }
        scan
    }
}

/// What the program counted is on record.
#[track_caller]
fn recorded(what: &str, program: &Path, args: &[&str], original: &Output) {
    let (output, xus) = table::xus_of(program, args, 2);
    assert_eq!(
        (output.status, output.text()),
        (original.status, original.text()),
        "{what}, recorded: {output:?}"
    );
    let own = fixture::counts(&output.text());
    let tasks = xus.iter().filter(|x| x.construct == "task").count() as u64;
    let iterations = xus
        .iter()
        .filter(|x| x.construct == "range")
        .map(|x| x.number("iterations"))
        .sum::<u64>();
    assert_eq!(
        (tasks, iterations),
        (own["tasks"], own["iterations"]),
        "{what}"
    );
    let labels: std::collections::BTreeSet<_> = xus.iter().map(|x| &x.label).collect();
    assert_eq!(labels.len(), xus.len(), "{what}: a label twice");
}

macro_rules! forms {
    ($($test:ident: $form:expr;)*) => {
        $(#[test]
        fn $test() {
            let form: Form = $form;
            form.check();
        })*
    };
}

forms! {
    not_position_independent: form("no-pie", "$CC -fno-PIE -no-pie $S/main.c $S/work.c -o program");
    lazy_without_relro: form("lazy", "$CC -fPIE -pie -Wl,-z,lazy,-z,norelro $S/main.c $S/work.c -o program");
    full_relro: form("full RELRO", "$CC -fPIE -pie -Wl,-z,now,-z,relro $S/main.c $S/work.c -o program");
    packed_relocations: form("DT_RELR", "$CC -fPIE -pie -Wl,-z,pack-relative-relocs $S/main.c $S/work.c -o program
        readelf -d program | grep -q RELR");
    only_gnu_hash: form("only .gnu.hash", "$CC -fPIE -pie -Wl,--hash-style=gnu $S/main.c $S/work.c -o program
        ! readelf -d program | grep -q '(HASH)'");
    only_old_hash: form("only .hash", "$CC -fPIE -pie -Wl,--hash-style=sysv $S/main.c $S/work.c -o program
        ! readelf -d program | grep -q GNU_HASH");
    ibt_plt: form("IBT PLT", "$CC -fPIE -pie -fcf-protection=full -Wl,-z,ibtplt,-z,lazy $S/main.c $S/work.c -o program
        readelf -SW program | grep -q plt.sec");
    ibt_plt_by_lld: form("IBT PLT by lld", "$CC -fPIE -pie -fuse-ld=lld -fcf-protection=full -Wl,-z,force-ibt $S/main.c $S/work.c -o program
        readelf -SW program | grep -q plt.sec").with(&["ld.lld"]);
    retpoline_plt: form("retpoline PLT", "$CC -fPIE -pie -fuse-ld=lld -Wl,-z,retpolineplt,-z,lazy $S/main.c $S/work.c -o program").with(&["ld.lld"]);
    retpoline_plt_now: form("retpoline PLT, full RELRO", "$CC -fPIE -pie -fuse-ld=lld -Wl,-z,retpolineplt,-z,now $S/main.c $S/work.c -o program").with(&["ld.lld"]);
    no_plt: form("-fno-plt", "$CC -fPIE -pie -fno-plt $S/main.c $S/work.c -o program");
    thunks: form("-mindirect-branch=thunk -fno-plt", "
        $CC -fPIE -pie -fno-plt -fcf-protection=none -mindirect-branch=thunk $S/main.c $S/work.c -o program").by(&[GCC]).without_lines();
    thunks_inline: form("-mindirect-branch=thunk-inline -fno-plt", "
        $CC -fPIE -pie -fno-plt -fcf-protection=none -mindirect-branch=thunk-inline $S/main.c $S/work.c -o program").by(&[GCC]).without_lines();
    thunks_elsewhere: form("-mindirect-branch=thunk-extern -fno-plt", "
        for r in ax bx cx dx si di bp 8 9 10 11 12 13 14 15; do
            echo \".globl __x86_indirect_thunk_r$r; .type __x86_indirect_thunk_r$r, @function\"
            echo \"__x86_indirect_thunk_r$r: lfence; jmp *%r$r; .size __x86_indirect_thunk_r$r, .-__x86_indirect_thunk_r$r\"
        done > thunks.s
        $CC -fPIE -pie -fno-plt -fcf-protection=none -mindirect-branch=thunk-extern $S/main.c $S/work.c thunks.s -o program").by(&[GCC]).without_lines();
    thunks_without_pie: form("-mindirect-branch=thunk -fno-plt, no-pie", "
        $CC -fno-PIE -no-pie -fno-plt -fno-optimize-sibling-calls -fcf-protection=none -mindirect-branch=thunk $S/main.c $S/work.c -o program").by(&[GCC]).without_lines();
    thunks_inline_without_pie: form("-mindirect-branch=thunk-inline -fno-plt, no-pie", "
        $CC -fno-PIE -no-pie -fno-plt -fno-optimize-sibling-calls -fcf-protection=none -mindirect-branch=thunk-inline $S/main.c $S/work.c -o program").by(&[GCC]).without_lines();
    retpolines: form("-mretpoline -fno-plt", "$CC -fPIE -pie -fno-plt -mretpoline $S/main.c $S/work.c -o program").by(&[CLANG]);
    retpolines_elsewhere: form("-mretpoline-external-thunk -fno-plt", "
        echo '.globl __x86_indirect_thunk_r11; __x86_indirect_thunk_r11: call 2f; 1: pause; lfence; jmp 1b; 2: mov %r11, (%rsp); ret' > thunk.s
        $CC -fPIE -pie -fno-plt -mretpoline-external-thunk $S/main.c $S/work.c thunk.s -o program").by(&[CLANG]);
    by_gold: form("gold", "$CC -fPIE -pie -fuse-ld=gold $S/main.c $S/work.c -o program").with(&["ld.gold"]);
    by_lld: form("lld", "$CC -fPIE -pie -fuse-ld=lld $S/main.c $S/work.c -o program").with(&["ld.lld"]);
    by_lld_without_pie: form("lld, no-pie", "$CC -fno-PIE -no-pie -fuse-ld=lld $S/main.c $S/work.c -o program").with(&["ld.lld"]);
    by_lld_in_one_segment: form("lld --no-rosegment", "$CC -fPIE -pie -fuse-ld=lld -Wl,--no-rosegment,-z,separate-loadable-segments $S/main.c $S/work.c -o program").with(&["ld.lld"]);
    without_section_headers: form("no section headers", "$CC -fPIE -pie $S/main.c $S/work.c -o full
        llvm-objcopy-19 --strip-sections full program").with(&["llvm-objcopy-19"]).without_lines();
    without_section_headers_ibt: form("no section headers, IBT PLT", "$CC -fPIE -pie -fcf-protection=full -Wl,-z,ibtplt,-z,lazy $S/main.c $S/work.c -o full
        llvm-objcopy-19 --strip-sections full program").with(&["llvm-objcopy-19"]).without_lines();
    without_section_headers_by_lld: form("no section headers, lld", "$CC -fPIE -pie -fuse-ld=lld $S/main.c $S/work.c -o full
        llvm-objcopy-19 --strip-sections full program").with(&["llvm-objcopy-19", "ld.lld"]).without_lines();
    without_section_headers_retpoline: form("no section headers, retpoline PLT", "$CC -fPIE -pie -fuse-ld=lld -Wl,-z,retpolineplt $S/main.c $S/work.c -o full
        llvm-objcopy-19 --strip-sections full program").with(&["llvm-objcopy-19", "ld.lld"]).without_lines();
    stripped: form("stripped", "$CC -fPIE -pie $S/main.c $S/work.c -s -o program").without_lines();
    stripped_with_old_hash: form("no section headers, only .hash", "$CC -no-pie -Wl,--hash-style=sysv $S/main.c $S/work.c -o full
        llvm-objcopy-19 --strip-sections full program").with(&["llvm-objcopy-19"]).without_lines();
    aligned_to_2_mib: form("2 MiB pages", "$CC -fPIE -pie -Wl,-z,max-page-size=0x200000,-z,common-page-size=0x200000 $S/main.c $S/work.c -o program");
    aligned_to_2_mib_in_one_segment: form("2 MiB pages, one segment", "$CC -no-pie -Wl,-z,max-page-size=0x200000,-z,noseparate-code,-z,norelro $S/main.c $S/work.c -o program");
    high_addresses: form("linked high", "$CC -fno-PIE -no-pie -Wl,-Ttext-segment=0x70000000 $S/main.c $S/work.c -o program");
    code_first: form("code far from the rest", "$CC -fno-PIE -no-pie -Wl,--section-start=.text=0x10000000 $S/main.c $S/work.c -o program");
    memory_before_code: form("zeroed memory in the first segment", "
        $CC -fno-PIE -no-pie $S/main.c $S/work.c -Wl,-Tbss=0x200000 -o program
        readelf -lW program | grep -m1 LOAD | grep -q 0x00000000001ff000");
    segment_without_bytes: form("a segment without bytes in the file", "
        $CC -fno-PIE -no-pie $S/main.c $S/work.c -Wl,-Tbss=0x10000000 -o program
        readelf -lW program | grep -q 'LOAD .* 0x0*10000000 0x0*10000000 0x000000 '");
    own_sections: form("own sections", "
        $CC -fPIE -pie $S/main.c $S/work.c -o plain
        head -c 3000 plain > extra
        objcopy --add-section .extra=extra --set-section-flags .extra=noload,readonly --rename-section .comment=.remark plain program");
    renamed_runtime: form("renamed runtime", "NAME=libgomp-a34b3233.so.1 TYPE=f; STAND_IN
        cp -L $(gcc -print-file-name=libgomp.so.1) libgomp-a34b3233.so.1
        $CC -fPIE -pie -Lstand-in -Wl,-rpath,'$ORIGIN' $S/main.c $S/work.c -o program
        readelf -d program | grep -q libgomp-a34b3233").by(&[GCC]);
    without_versions: form("no symbol versions", "NAME=libgomp.so.1 TYPE=f; STAND_IN
        $CC -fPIE -pie -Lstand-in $S/main.c $S/work.c -o program
        ! nm -D program | grep GOMP_ | grep -q @").by(&[GCC]);
    untyped_imports: form("NOTYPE imports", "NAME=libgomp.so.1 TYPE=; STAND_IN
        $CC -fPIE -pie -Lstand-in $S/main.c $S/work.c -o program
        readelf -W --dyn-syms program | grep GOMP_ | grep -q NOTYPE").by(&[GCC]);
    untyped_imports_without_sections: form("NOTYPE imports, no section headers", "NAME=libgomp.so.1 TYPE=; STAND_IN
        $CC -fPIE -pie -Lstand-in $S/main.c $S/work.c -o full
        llvm-objcopy-19 --strip-sections full program").by(&[GCC]).with(&["llvm-objcopy-19"]).without_lines();
    shared_library: form("library", "
        $CC -fPIC -shared $S/work.c -o libwork.so
        $CC $S/main.c -L. -lwork -Wl,-rpath,'$ORIGIN' -o program");
    shared_library_by_lld: form("library by lld", "
        $CC -fPIC -shared -fuse-ld=lld -Wl,-soname,libwork.so $S/work.c -o libwork.so
        $CC $S/main.c -L. -lwork -Wl,-rpath,'$ORIGIN' -o program").with(&["ld.lld"]);
    library_that_names_no_runtime: form("library without runtime in DT_NEEDED", "
        $CC -fPIC -c $S/work.c && ${CC%% *} -shared work.o -s -o libwork.so
        ! readelf -d libwork.so | grep -q omp
        $CC $S/main.c -L. -Wl,--no-as-needed -lwork -Wl,-rpath,'$ORIGIN' -o program").without_lines();
    runtime_linked_in: form("libgomp.a", "
        $CC -fPIE -c $S/main.c $S/work.c
        gcc -pie main.o work.o $(gcc -print-file-name=libgomp.a) -o program
        ! readelf -d program | grep -q gomp").by(&[GCC]);
    runtime_linked_in_without_pie: form("libgomp.a, no-pie", "
        $CC -fno-PIE -c $S/main.c $S/work.c
        gcc -no-pie main.o work.o $(gcc -print-file-name=libgomp.a) -o program").by(&[GCC]);
    appended_data: form("overlay", "$CC -fPIE -pie $S/main.c $S/work.c -o program
        echo 'some data OVERLAY found' >> program").args(&["1", "overlay"]);
    appended_data_without_sections: form("overlay, no section headers", "$CC -fPIE -pie $S/main.c $S/work.c -o full
        llvm-objcopy-19 --strip-sections full program
        echo 'some data OVERLAY found' >> program").args(&["1", "overlay"]).with(&["llvm-objcopy-19"]).without_lines();
    debug_link: form("separate debug file", "$CC -fPIE -pie $S/main.c $S/work.c -o program
        objcopy --only-keep-debug program program.debug
        strip program && objcopy --add-gnu-debuglink=program.debug program").without_lines();
    compressed_debug_information: form("compressed DWARF", "$CC -fPIE -pie -gz $S/main.c $S/work.c -o program
        readelf -t program | grep -q ZLIB");
    debug_information_compressed_as_of_old: form(".zdebug", "$CC -fPIE -pie $S/main.c $S/work.c -o plain
        objcopy --compress-debug-sections=zlib-gnu plain program
        readelf -SW program | grep -q zdebug_line");
    debug_information_compressed_by_zstd: form("DWARF in zstd", "$CC -fPIE -pie $S/main.c $S/work.c -o plain
        llvm-objcopy-19 --compress-debug-sections=zstd plain program").with(&["llvm-objcopy-19"]);
    split_debug_information: form("split DWARF", "$CC -fPIE -pie -gsplit-dwarf $S/main.c $S/work.c -o program");
    hundreds_of_megabytes: form("300 MB", "
        echo '.data; .globl big; big: .byte 1; .zero 200000000; .byte 1' > big.s
        $CC -fPIE -pie $S/main.c $S/work.c big.s -o program").by(&[GCC]);
}
