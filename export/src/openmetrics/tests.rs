use super::*;
use ompfuse_format::Construct;
use ompfuse_format::site::Source;

#[test]
fn names_of_programs_do_no_harm() {
    let source = Source {
        file: "/a/b\\\"c\n.c".to_owned(),
        line: 7,
    };
    let labels = place(
        Some(Construct::Loop),
        Some(&source),
        Some("f{x=\"1\"} 2\n# EOF"),
        Some("/bin/lu.x"),
        "0x40",
    );
    let mut family = Family::units();
    family.add(labels, 3);
    let text = text(vec![family, Family::events()]).unwrap();
    assert_eq!(
        text,
        "# HELP ompfuse_region_units Execution units of a region: ranges, sections, tasks.\n\
         # TYPE ompfuse_region_units counter\n\
         ompfuse_region_units_total{region=\"loop b\\\\\\\"c\\n.c:7\",construct=\"loop\",\
         function=\"f{x=\\\"1\\\"} 2\\n# EOF\",module=\"lu.x\",address=\"0x40\"} 3\n\
         # EOF\n"
    );
}

#[test]
fn units_of_numbers_are_told() {
    let mut family = Family::recording();
    family.add(vec![], 1.5);
    let text = text(vec![family]).unwrap();
    assert!(
        text.contains("# UNIT ompfuse_recording_seconds seconds\nompfuse_recording_seconds 1.5\n"),
        "{text}"
    );
}
