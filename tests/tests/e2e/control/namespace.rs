//! Numbers of processes: in a namespace of its own a process has another one, and one that is free is given to somebody else.

use super::of;
use super::steady::{Steady, TASKS};
use ompfuse_tests::dialogue::Dialogue;
use ompfuse_tests::fixture::Fixture;
use ompfuse_tests::{command, process, skip};
use std::process::Command;

/// As in a container: the process has another number for itself than for who looks from outside.
#[test]
fn a_process_in_a_namespace_of_its_own_is_found() {
    let unshare = ["-p", "-f", "--mount-proc"];
    let tried = Command::new("unshare").args(unshare).arg("true").output();
    if !tried.is_ok_and(|o| o.status.success()) {
        skip("no namespace can be made here");
        return;
    }
    let Some(steady) = Steady::all().next() else {
        return;
    };
    let mut record = command::with_threads(2);
    record.args(["record", "--events", "none", "-o"]);
    record.arg(steady.out()).arg("--").arg(&steady.program);
    let mut inside = Command::new("unshare");
    inside.args(unshare).arg(record.get_program());
    inside.args(record.get_args());
    let variables = record.get_envs();
    inside.envs(variables.filter_map(|(k, v)| Some((k, v?))));
    let mut dialogue = Dialogue::start(&mut inside);
    assert_eq!(dialogue.hear(), "ready");
    dialogue.ask("3");
    let pid = steady.ctl(&["--disable", "task"])["pid"].clone();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    assert!(status.starts_with("Name:\tsteady\n"), "{status}");
    let number = pid.to_string();
    let by_number = command::json(["ctl", &number, "--format", "json"]);
    assert_eq!(by_number["processes"][0]["pid"], pid);
    command::ok(["watch", &number]);
    dialogue.ask("4");
    let (_, xus) = steady.end(dialogue, 2, &["3", "4"]);
    assert_eq!(of(&xus, "task").count() as u64, 3 * TASKS);
}

/// What the processes of a namespace do: one is killed, and another one gets its number, of a user who doesn't show what it
/// has mapped. `$1`: the command; `$2`: a folder; `$3`: the program.
const AGAIN: &str = r#"
cp "$1" "$2/ompfuse" && chmod 755 "$2" "$2/ompfuse" || exit 99
"$1" record --events none -o "$2/out" -- "$3" 10 kill > /dev/null
for file in "$2"/out/run-0001/*.ctl; do pid=$(basename "$file" .ctl); done
chown -R 65534 "$2/out"
echo $((pid - 1)) > /proc/sys/kernel/ns_last_pid || exit 99
sleep 100 &
test $! = $pid && setpriv --reuid 65534 --clear-groups test -x "$2/ompfuse" || exit 99
for what in ctl watch report; do
    setpriv --reuid 65534 --clear-groups "$2/ompfuse" $what "$2/out" 2>&1
    echo "$what: $?"
done
kill $!
"#;

#[test]
fn who_gets_the_number_of_a_killed_process_is_not_taken_for_it() {
    let Some(build) = Fixture::open("lifecycle").ordinary_builds("gcc").pop() else {
        return;
    };
    let folder = tempfile::tempdir().expect("there is room for a recording");
    let mut inside = Command::new("unshare");
    inside.args(["-p", "-f", "--mount-proc", "sh", "-c", AGAIN, "sh"]);
    inside.arg(command::path()).arg(folder.path());
    let record = command::with_threads(2);
    process::clean(&mut inside, 2);
    let variables = record.get_envs();
    inside.envs(variables.filter_map(|(k, v)| Some((k, v?))));
    let output = process::run(inside.arg(&build.path));
    let (said, errors) = (output.text(), output.errors());
    if output.status == 99 || errors.contains("unshare:") || errors.contains("setpriv:") {
        skip("no process can be given a number here");
        return;
    }
    assert!(said.contains("\nctl: 1\n"), "{output:?}");
    assert!(said.contains("\nwatch: 1\n"), "{output:?}");
    assert!(said.ends_with("report: 0\n"), "{output:?}");
    let nothing = said.matches("nothing is being recorded in").count();
    assert_eq!(nothing, 2, "{output:?}");
}
