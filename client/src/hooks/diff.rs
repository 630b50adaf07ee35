//! The unified diff that shows a change before it is made.

use std::path::Path;

use similar::TextDiff;

/// From one state of a file to another; `None` is no file.
pub fn unified(path: &Path, before: Option<&str>, after: Option<&str>) -> String {
    let name = |text: Option<&str>| match text {
        Some(_) => path.display().to_string(),
        None => "/dev/null".to_owned(),
    };
    TextDiff::from_lines(before.unwrap_or_default(), after.unwrap_or_default())
        .unified_diff()
        .context_radius(3)
        .missing_newline_hint(true)
        .header(&name(before), &name(after))
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_as_diff_writes_it() {
        let path = Path::new("/a/settings.json");
        let diff = unified(path, Some("{\n  \"a\": 1\n}"), Some("{\n  \"a\": 1,\n  \"b\": 2\n}"));
        let expected = "--- /a/settings.json\n+++ /a/settings.json\n@@ -1,3 +1,4 @@\n {\n-  \"a\": 1\n+  \"a\": 1,\n+  \"b\": 2\n }\n\\ No newline at end of file\n";
        assert_eq!(diff, expected);
        assert_eq!(
            unified(path, None, Some("{}\n")),
            "--- /dev/null\n+++ /a/settings.json\n@@ -0,0 +1 @@\n+{}\n"
        );
        assert_eq!(
            unified(path, Some("{}\n"), None),
            "--- /a/settings.json\n+++ /dev/null\n@@ -1 +0,0 @@\n-{}\n"
        );
        assert_eq!(unified(path, Some("{}"), Some("{}")), "");
    }
}
