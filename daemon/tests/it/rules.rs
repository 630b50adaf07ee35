//! Rules about the source that a test can hold (`rpc.md`, point 8).

use std::path::{Path, PathBuf};

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|e| e == "rs") {
            into.push(path);
        }
    }
}

#[test]
fn p8_only_the_server_names_its_library_and_its_version_is_pinned() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&package.join("src"), &mut files);
    assert!(files.len() > 20);
    let named: Vec<_> = files
        .iter()
        .filter(|f| !f.starts_with(package.join("src/server")))
        .filter(|f| std::fs::read_to_string(f).unwrap().contains("jsonrpsee"))
        .collect();
    assert_eq!(named, Vec::<&PathBuf>::new());
    let workspace = std::fs::read_to_string(package.parent().unwrap().join("Cargo.toml")).unwrap();
    assert!(workspace.lines().any(|l| l.starts_with("jsonrpsee") && l.contains("version = \"=")));
}
