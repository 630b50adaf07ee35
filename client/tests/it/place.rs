//! A home, a store and a project of a test's own, and commands run in them.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use minder_client::commands::hooks::{Action, Options, Output, run};
use minder_client::hooks::{HooksError, Scope, Surroundings, pack};

/// The program whose hooks are put in.
pub const PROGRAM: &str = "/opt/minder/bin/minder";

pub struct Place {
    pub surroundings: Surroundings,
    root: tempfile::TempDir,
}

/// What a command printed and how it ended.
#[derive(Debug)]
pub struct Ran {
    pub code: Result<u8, HooksError>,
    pub out: String,
    pub err: String,
}

impl Ran {
    pub fn code(&self) -> u8 {
        match &self.code {
            Ok(code) => *code,
            Err(error) => error.exit_code(),
        }
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).expect("one JSON object on stdout")
    }
}

impl Place {
    pub fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let real = root.path().canonicalize().unwrap();
        for folder in ["home", "project", "bin"] {
            fs_err::create_dir(real.join(folder)).unwrap();
        }
        let surroundings = Surroundings {
            home: real.join("home"),
            variables: BTreeMap::new(),
            here: real.join("project"),
            path: Some(real.join("bin").into_os_string()),
            minder_home: real.join("store"),
        };
        Self { surroundings, root }
    }

    /// With these settings of the user.
    pub fn with_settings(bytes: &[u8]) -> Self {
        let place = Self::new();
        fs_err::create_dir(place.home().join(".claude")).unwrap();
        fs_err::write(place.settings(), bytes).unwrap();
        place
    }

    pub fn home(&self) -> &Path {
        &self.surroundings.home
    }

    pub fn settings(&self) -> PathBuf {
        self.file("claude", Scope::User)
    }

    /// The file of a harness's pack.
    pub fn file(&self, harness: &str, scope: Scope) -> PathBuf {
        pack::of(harness).unwrap().file(&self.surroundings, scope)
    }

    pub fn bytes(&self) -> Vec<u8> {
        fs_err::read(self.settings()).unwrap()
    }

    pub fn hooks(&self, action: Action) -> Ran {
        self.hooks_with(PROGRAM, &options(action))
    }

    pub fn hooks_with(&self, program: &str, options: &Options) -> Ran {
        ran(|output| run(options, &self.surroundings, program, output))
    }

    /// Everything under the folder of this test: each path with what it is, its times included.
    pub fn tree(&self) -> BTreeMap<PathBuf, String> {
        let mut tree = BTreeMap::new();
        note(self.root.path(), &mut tree);
        tree
    }
}

pub fn options(action: Action) -> Options {
    Options {
        action,
        harness: "claude".to_owned(),
        scope: None,
        dry_run: false,
        json: false,
        terminal: false,
    }
}

/// Runs something that prints.
pub fn ran(command: impl FnOnce(&mut Output<'_>) -> Result<u8, HooksError>) -> Ran {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = command(&mut Output { out: &mut out, err: &mut err });
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { code, out: text(out), err: text(err) }
}

/// A script that can be run.
pub fn script(file: &Path, body: &str) {
    fs_err::write(file, format!("#!/bin/sh\n{body}\n")).unwrap();
    fs_err::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn note(path: &Path, tree: &mut BTreeMap<PathBuf, String>) {
    let metadata = fs_err::symlink_metadata(path).unwrap();
    let mut said = format!("{:o} {} {}", metadata.mode(), metadata.uid(), metadata.ino());
    if metadata.is_symlink() {
        said += &format!(" -> {}", fs_err::read_link(path).unwrap().display());
    } else if metadata.is_dir() {
        for entry in fs_err::read_dir(path).unwrap() {
            note(&entry.unwrap().path(), tree);
        }
    } else {
        let bytes = fs_err::read(path).unwrap();
        said += &format!(" {} {}", metadata.mtime_nsec(), std::ffi::OsStr::from_bytes(&bytes).display());
    }
    tree.insert(path.to_owned(), said);
}
