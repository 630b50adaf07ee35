//! The files of the repository, as text.

use std::path::{Path, PathBuf};

use super::rust::Code;

/// The crates, by folder.
pub const CRATES: [&str; 4] = ["proto", "daemon", "client", "tests"];

/// Folders that hold nothing of ours.
const FOREIGN: [&str; 6] = ["target", "node_modules", ".git", "node", "artifacts", "grown"];

/// One file.
pub struct File {
    /// Its place in the repository, with `/`.
    pub path: String,
    pub text: String,
}

/// The repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a crate lies in the workspace")
}

/// Every file that is text, in the order of paths.
pub fn files() -> Vec<File> {
    let mut paths = Vec::new();
    walk(root(), &mut paths);
    paths.sort();
    let read = |path: PathBuf| {
        let text = String::from_utf8(std::fs::read(&path).unwrap()).ok()?;
        let path = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        Some(File { path, text })
    };
    let files: Vec<File> = paths.into_iter().filter_map(read).collect();
    assert!(files.len() > 200, "the repository is not where it is looked for");
    files
}

/// The Rust files of ours, of every crate, its tests included.
pub fn rust_files() -> Vec<File> {
    let ours = |f: &File| f.path.ends_with(".rs");
    files().into_iter().filter(ours).collect()
}

/// The code that runs in the programs: no tests, and none of the crate that holds nothing else.
pub fn program_code() -> Vec<(String, Code)> {
    let in_program = |f: &File| f.path.contains("/src/") && !f.path.starts_with("tests/");
    let of = |f: File| (f.path, Code::of_program(&f.text));
    let tests = test_modules();
    // What lies in the folder of a module of tests is of the tests too.
    let of_tests =
        |f: &File| tests.iter().any(|t| f.path == format!("{t}.rs") || f.path.starts_with(&format!("{t}/")));
    let files = rust_files().into_iter().filter(in_program).filter(|f| !of_tests(f));
    files.map(of).collect()
}

/// The sources of the programs as they are written, comments and literals included, without the tests at their ends.
pub fn program_texts() -> Vec<File> {
    let programs: Vec<String> = program_code().into_iter().map(|(path, _)| path).collect();
    let mut texts = files();
    texts.retain(|file| programs.contains(&file.path));
    for file in &mut texts {
        let tests = ["#[cfg(test)]\nmod ", "#[cfg(test)]\npub(crate) mod "];
        let end = tests.iter().filter_map(|t| file.text.find(t)).min();
        file.text.truncate(end.unwrap_or(file.text.len()));
    }
    texts
}

/// Modules of tests alone, declared as `#[cfg(test)] mod name;`: their places, without the end.
fn test_modules() -> Vec<String> {
    let declared = |file: &File| {
        let code = Code::new(&file.text);
        let names = code.test_modules();
        let place = |name: String| places_of(&file.path, &name)[0].trim_end_matches(".rs").to_owned();
        names.into_iter().map(place).collect::<Vec<_>>()
    };
    rust_files().iter().flat_map(declared).collect()
}

/// The two places where the module `name`, declared in `file`, can be.
pub fn places_of(file: &str, name: &str) -> [String; 2] {
    let (folder, stem) = file.rsplit_once('/').expect("a source is in a folder");
    let folder = match stem {
        "mod.rs" | "lib.rs" | "main.rs" => folder.to_owned(),
        other => format!("{folder}/{}", other.trim_end_matches(".rs")),
    };
    [format!("{folder}/{name}.rs"), format!("{folder}/{name}/mod.rs")]
}

fn walk(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            let name = entry.file_name();
            // `tests/node` is ours, what npm puts into it is not.
            let foreign = FOREIGN.iter().any(|f| name == *f) && !entry.path().ends_with("tests/node");
            if !foreign {
                walk(&entry.path(), into);
            }
        } else if kind.is_file() && entry.file_name() != ".git" {
            into.push(entry.path());
        }
    }
}
