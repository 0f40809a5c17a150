//! What pages that leave the house don't tell: host, arguments, absolute paths.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Folders of the system, which say nothing of the house.
const KNOWN: [&str; 3] = ["/proc/", "/sys/", "/dev/"];

/// The same without host names, arguments, and folders of absolute paths. Of a value that can't be read back nothing is told.
pub fn redacted<T: Serialize + DeserializeOwned>(value: &T) -> T {
    let mut json = serde_json::to_value(value).expect("a report has only string keys");
    walk(&mut json, true);
    serde_json::from_value(json).expect("a report without names is one")
}

fn walk(value: &mut Value, is_whole: bool) {
    match value {
        Value::String(text) => *text = without_folders(text),
        Value::Array(list) => list.iter_mut().for_each(|v| walk(v, false)),
        Value::Object(fields) => {
            for (name, value) in fields {
                match name.as_str() {
                    "host" if is_whole => *value = Value::from(""),
                    "host" => *value = Value::Null,
                    "args" => *value = Value::Array(vec![]),
                    _ => walk(value, false),
                }
            }
        }
        _ => {}
    }
}

/// A text in which absolute paths are without their folders.
pub fn without_folders(text: &str) -> String {
    let is_end = |c: char| c.is_whitespace() || "\"'`,;)]}".contains(c);
    let mut out = String::with_capacity(text.len());
    let mut before = ' ';
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let is_path = c == '/'
            && !rest[1..].starts_with([' ', '/'])
            && rest.len() > 1
            && (before.is_whitespace() || "\"'`([{=:".contains(before));
        if !is_path {
            out.push(c);
            before = c;
            rest = &rest[c.len_utf8()..];
            continue;
        }
        // A path that is the whole text may have spaces.
        let len = match out.is_empty() {
            true if !text.contains(": ") => rest.len(),
            _ => rest.find(is_end).unwrap_or(rest.len()),
        };
        let path = &rest[..len];
        match KNOWN.iter().any(|k| path.starts_with(k)) {
            true => out.push_str(path),
            false => out.push_str(path.rsplit('/').next().unwrap_or_default()),
        }
        before = 'x';
        rest = &rest[len..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::without_folders;

    #[test]
    fn folders_of_absolute_paths_are_left_out() {
        for (text, expected) in [
            ("/home/me/my program/a.out", "a.out"),
            ("./build/a.out", "./build/a.out"),
            (
                "cannot open /home/me/x.so: no such file",
                "cannot open x.so: no such file",
            ),
            (
                "set /proc/sys/kernel/perf_event_paranoid to 1",
                "set /proc/sys/kernel/perf_event_paranoid to 1",
            ),
            ("'/a/b' and (/c/d)", "'b' and (d)"),
            ("work / span", "work / span"),
            ("10 B/s", "10 B/s"),
        ] {
            assert_eq!(without_folders(text), expected);
        }
    }
}
