//! The pack for Pi: an extension, which Pi 0.73.1 was seen to load from this folder and to run in itself.

use super::super::pack::{Body, Pack, Program, Reader, UserPlace, Works};

/// The pack.
pub static PACK: Pack = Pack {
    name: "pi",
    title: "Pi",
    program: Program { name: "pi", below_home: &[], below_settings: &[], oldest: None },
    user: UserPlace {
        variable: Some(("PI_CODING_AGENT_DIR", "extensions/minder.js")),
        home: ".pi/agent/extensions/minder.js",
    },
    project: ".pi/extensions/minder.js",
    body: Body::Script("extension", &[include_str!("plugin/core.js"), include_str!("plugin/pi.js")]),
    hook_name: None,
    reader: Reader { comments: true, trailing_commas: true, root_keys: &[], switch: None, reviews: None },
    sandbox: None,
    lists_sessions: false,
    then: "start `pi` anew where it runs, or `/reload`: it loads an extension at its start",
    works: Works {
        tried: &["0.73.1"],
        idle: "wakes",
        busy: "next step",
        dialog: "has none",
        channels: &["hook", "headless"],
    },
};
