//! What a shim does with a harness, a theme a module. The shim is started in a folder as the daemon makes it; the
//! harness is `fake run`.

mod child;
mod ends;
mod ladder;
mod links;
mod output;
mod time;
mod trees;

use std::time::Duration;

use minder_proto::turn::stream::{Rules, Shape, Tool};

/// Longer than anything here takes.
const LIMIT: Duration = Duration::from_secs(60);
const TERM: Option<i32> = Some(15);

fn shape(kind: &str) -> Shape {
    Shape(vec![("type".to_owned(), kind.to_owned())])
}

/// A stream in which `text` is progress, `call` and `done` are a tool's, and `result` is the answer.
fn typed() -> Rules {
    let tool = |kind| {
        vec![Tool { line: shape(kind), each: None, item: Shape::default(), id: "id".to_owned(), task: false }]
    };
    let progress = vec![shape("text")];
    Rules {
        progress,
        tool_start: tool("call"),
        tool_end: tool("done"),
        result: vec![shape("result")],
        failed: Vec::new(),
    }
}
