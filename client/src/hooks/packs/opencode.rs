//! The pack for OpenCode: a plugin, which OpenCode 1.18.33 was seen to load from this folder and to run in itself.

use super::super::pack::{Body, Pack, Program, Reader, UserPlace, Works};

/// The pack.
pub static PACK: Pack = Pack {
    name: "opencode",
    title: "OpenCode",
    program: Program {
        name: "opencode",
        below_home: &[".opencode/bin/opencode"],
        below_settings: &[],
        oldest: None,
    },
    user: UserPlace {
        variable: Some(("XDG_CONFIG_HOME", "opencode/plugin/minder.js")),
        home: ".config/opencode/plugin/minder.js",
    },
    project: ".opencode/plugin/minder.js",
    body: Body::Script("plugin", &[include_str!("plugin/core.js"), include_str!("plugin/opencode.js")]),
    hook_name: None,
    reader: Reader { comments: true, trailing_commas: true, root_keys: &[], switch: None, reviews: None },
    sandbox: None,
    lists_sessions: false,
    then: "start `opencode` anew where it runs: it loads a plugin at its start",
    works: Works {
        tried: &["1.18.33"],
        idle: "wakes",
        busy: "next step",
        dialog: "after",
        channels: &["hook", "opencode", "headless"],
    },
};
