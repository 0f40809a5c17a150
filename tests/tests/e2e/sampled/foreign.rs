//! Processes of other users, and of containers: what they have mapped is looked at, not what has its name here.

use super::running::{Going, looked_at};
use super::{is_allowed, program, regions, source};
use ompfuse_tests::{command, compile, process, skip};
use serde_json::Value;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// In a namespace of its own the folder `$1` is another one, with the program `$2` and its libraries. It is the root there.
const CONTAINER: &str = r#"
mount -t tmpfs none "$1" && mkdir "$1/bin" && cp "$2" "$1/bin/running" || exit 99
for file in $(ldd "$2" | grep -o '/[^ ]*'); do
    mkdir -p "$1/$(dirname "$file")" && cp -L "$file" "$1$file" || exit 99
done
exec chroot --userspec=65534:65534 "$1" /bin/running shares
"#;

/// `None`: it has ended, as nothing of the kind may be started here.
fn start(command: &mut Command) -> Option<Going> {
    process::clean(command, 2);
    command.env("OMP_WAIT_POLICY", "passive");
    let started = command.stdout(Stdio::piped()).spawn();
    let mut going = Going(started.ok()?);
    std::thread::sleep(Duration::from_secs(1));
    let has_ended = going.0.try_wait().expect("it is ours").is_some();
    (!has_ended).then_some(going)
}

/// Whether files can be opened by where they are mapped.
fn shows_mapped(pid: u32) -> bool {
    let files = std::fs::read_dir(format!("/proc/{pid}/map_files"));
    let first = files.into_iter().flatten().flatten().next();
    first.is_some_and(|file| std::fs::metadata(file.path()).is_ok())
}

/// The line in which most of its work is.
fn hottest(json: &Value) -> u64 {
    let lines = regions(json)[0]["lines"].as_array().expect("lines");
    lines[0]["line"].as_u64().expect("a line")
}

#[test]
fn what_is_mapped_is_looked_at_and_nothing_that_it_names() {
    if !is_allowed() {
        return;
    }
    if std::fs::metadata("/proc/self").expect("it is there").uid() != 0 {
        return skip("only root may look at other users' processes");
    }
    let Some((folder, running)) = program("running", "gcc -O1 -g -fopenmp") else {
        return;
    };
    let folder = folder.path();
    let root = folder.join("root");
    std::fs::create_dir_all(root.join("bin")).expect("the folder is ours");
    // What has the program's name here tells other lines.
    let text = std::fs::read_to_string(source("running.c")).expect("a source");
    let other = folder.join("other.c");
    std::fs::write(&other, "\n".repeat(100) + &text).expect("the folder is ours");
    assert!(compile::files(
        &[other],
        &root.join("bin/running"),
        "gcc -O1 -g -fopenmp"
    ));

    let mut own = Command::new(&running);
    own.arg("shares");
    let mut of_user = Command::new("setpriv");
    of_user.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    of_user.arg(&running).arg("shares");
    let mut contained = Command::new("unshare");
    contained.args(["-m", "sh", "-c", CONTAINER, "sh"]);
    contained.arg(&root).arg(&running);
    // Whoever may not enter the folder could not start it.
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755))
        .expect("the folder is ours");
    let mut lines = vec![];
    let mut alive = vec![];
    for (name, command) in [
        ("own", &mut own),
        ("user", &mut of_user),
        ("container", &mut contained),
    ] {
        let Some(going) = start(command) else {
            assert_ne!(name, "own");
            skip("no such process can be started here");
            continue;
        };
        if name == "container" && !shows_mapped(going.0.id()) {
            skip("root of a container may not open what processes have mapped");
            continue;
        }
        let out = folder.join(name);
        let (_, json) = looked_at(&going, &out, "1s");
        assert_eq!(json["process"]["is_foreign"], name != "own", "{json:#}");
        lines.push((name, hottest(&json)));
        let page = folder.join("page.html");
        command::ok([
            Path::new("report"),
            &out.join("run-0001"),
            Path::new("--html"),
            &page,
        ]);
        let page = std::fs::read_to_string(page).expect("a page");
        assert_eq!(
            page.contains("here: spin"),
            name == "own",
            "{name}: sources"
        );
        alive.push(going);
    }
    assert!(
        lines.iter().all(|(_, line)| *line == lines[0].1),
        "{lines:?}"
    );
    if lines.len() == 3 {
        let pids = format!("{},{}", alive[0].0.id(), alive[2].0.id());
        let mut both = command::with_threads(2);
        both.args(["profile", "-p", &pids, "-o", "none"]);
        let both = process::run(both.current_dir(folder));
        assert_eq!(both.status, 1, "{both:?}");
        assert!(
            both.errors()
                .ends_with("see different files; look at each alone\n"),
            "{both:?}"
        );
        assert!(!folder.join("none").exists());
        assert_one_user_cannot(&folder.join("ompfuse"), alive[2].0.id());
    }
}

/// Without root, from outside of it.
fn assert_one_user_cannot(copy: &Path, pid: u32) {
    let ours = command::with_threads(2);
    std::fs::copy(ours.get_program(), copy).expect("there is room");
    let mut user = Command::new("setpriv");
    user.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    user.arg(copy).args(["watch", "-p", &pid.to_string()]);
    let told = process::run(&mut user);
    assert_eq!(told.status, 1, "{told:?}");
    let expected = format!(
        "ompfuse: process {pid} sees other files (a container); look at it from inside of that, or as root outside of it\n"
    );
    assert_eq!(told.errors(), expected);
}
