use super::*;

fn parsed(text: &str) -> Selector {
    text.parse().unwrap()
}

#[test]
fn names_and_conditions() {
    let kind = |text: &str| {
        let selector = parsed(text);
        (selector.name, selector.conditions)
    };
    let source = |file: &str, line: Option<&str>| {
        let line = line.map(str::to_owned);
        (Name::Any, vec![Condition::Source(file.to_owned(), line)])
    };
    let named = |name| (name, vec![]);
    assert_eq!(kind("task"), named(Name::Construct(Construct::Task)));
    assert_eq!(kind("0x1a"), named(Name::Address(0x1a)));
    assert_eq!(kind("lu.c:12"), source("lu.c", Some("12")));
    assert_eq!(kind("lu.c:1?"), source("lu.c", Some("1?")));
    assert_eq!(kind("lu.c:?"), source("lu.c", Some("?")));
    assert_eq!(kind("file:lu:12"), source("lu", Some("12")));
    assert_eq!(kind("src/lu.f90"), source("src/lu.f90", None));
    assert_eq!(kind("lu.c:*"), source("lu.c", None));
    for function in ["solve.part.0", "ns::f*", "ns::*1", "*", "a.cold", "size::f"] {
        assert_eq!(kind(function), named(Name::In(function.to_owned())));
    }
    let task = kind("file:lu.c:task");
    assert_eq!(task.0, Name::Construct(Construct::Task));
    assert_eq!(task.1, source("lu.c", None).1);
    assert_eq!(kind("user:solve*"), named(Name::User("solve*".to_owned())));
    assert_eq!(kind("user::f"), named(Name::In("user::f".to_owned())));
    assert_eq!(kind("lib:libfoo*"), named(Name::Any));
    assert_eq!(kind("lib:libfoo.so:0x1a"), named(Name::Address(0x1a)));
    for wrong in [
        "",
        "0xzz",
        "lib:",
        "lib::task",
        "lib:x:",
        "user:",
        "fn:",
        "size:9..",
        "from:f",
    ] {
        assert!(wrong.parse::<Selector>().is_err(), "{wrong}");
    }
}

#[test]
fn modules() {
    let selector = parsed("lib:libfoo*:task");
    assert!(selector.is_about("/usr/lib/libfoo.so.1") && selector.is_about("libfoo"));
    assert!(!selector.is_about("/libfoo/x") && selector.library().is_some());
    assert!(parsed("task").is_about("/usr/lib/libfoo.so.1"));
}

#[test]
fn regions_that_the_program_names() {
    let means = |text: &str, name| parsed(text).matches_user(name);
    assert!(means("user:st*", "step") && !means("user:st*", "rest"));
    assert!(means("user-region", "step") && !means("task", "task"));
    assert!(!means("step", "step") && !means("lib:x:user-region", "step"));
}

#[test]
fn functions_by_all_conditions() {
    let place = |function| Place {
        construct: Some(Construct::Function),
        address: Some(0x1000),
        file: Some("/home/x/src/solve2.c"),
        function: Some(function),
        size: Some(200),
        callers: &["_ZN4mesh4stepEv"],
        ..Place::default()
    };
    let parsed = |text| Selector::parse(text, Chooses::Functions).unwrap();
    for (fitting, is_one) in [
        ("f", true),
        ("fn:f", true),
        ("0x1000", true),
        ("solve2.c", false),
        ("file:src/solve*.c", false),
        ("size:200..", false),
        ("size:..200", false),
        ("size:200..200:*", false),
        ("from:mesh::step", false),
        ("from:mesh::step:size:100..:file:solve2.c", false),
        ("file:solve2.c:?", false),
        ("from:mesh::*:f", true),
    ] {
        let selector = parsed(fitting);
        assert!(selector.matches(&place("f")), "{fitting}");
        assert_eq!(selector.is_one_function(), is_one, "{fitting}");
    }
    for other in [
        "g",
        "0x1001",
        "file:olve2.c",
        "size:201..",
        "size:..199",
        "from:step",
        "from:mesh::step:size:..100",
        "file:solve2.c:g",
        "size::f",
    ] {
        assert!(!parsed(other).matches(&place("f")), "{other}");
    }
    assert!(parsed("size::f").matches(&place("size::f")));
    assert!(parsed("task").matches(&place("task"))); // no construct: a function may be called so
    let caller = parsed("lib:libfoo*:size:100..:from:mesh::step");
    assert!(!caller.needs_files() && parsed("file:a.c").needs_files());
    assert!(caller.asks_for_callees("mesh::step") && !caller.asks_for_callees("f"));
    for wrong in [
        "",
        "lib:libfoo:",
        "lib::f",
        "size:200",
        "size:..",
        "size:9..8",
        "size:x..",
        "file:",
        "from:f:",
        "size:-1..",
        "lu.c:12",
        "user:f",
    ] {
        assert!(
            Selector::parse(wrong, Chooses::Functions).is_err(),
            "{wrong}"
        );
    }
}
