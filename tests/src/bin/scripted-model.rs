//! The scripted model as a program, for trying a harness by hand.
//!
//! `scripted-model [--port N] [--log FILE] [--bodies]` serves until it is ended. It prints its base URL, and
//! writes one JSON line for each request.
#![allow(clippy::print_stdout)] // A program for a person at a terminal; it has no other output.

use std::fs::File;
use std::io::Write;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use minder_tests::model::Model;
use serde_json::json;

fn main() -> Result<()> {
    let mut port = 0;
    let mut log: Option<File> = None;
    let mut bodies = false;
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--port" => port = args.next().context("--port takes a number")?.parse().context("--port")?,
            "--log" => {
                let path = args.next().context("--log takes a file")?;
                log = Some(File::create(&path).with_context(|| format!("cannot write {path}"))?);
            }
            "--bodies" => bodies = true,
            "--help" | "-h" => {
                println!("scripted-model [--port N] [--log FILE] [--bodies]");
                return Ok(());
            }
            _ => bail!("unknown argument {arg}; try --help"),
        }
    }
    let model = Model::start_on(port).with_context(|| format!("cannot listen on port {port}"))?;
    println!("{}", model.base_url());
    let mut written = 0;
    loop {
        let new = |all: &[_]| (all.len() > written).then(|| all[written..].to_vec());
        // The wait is bounded only because every wait here is.
        let Ok(requests) = model.wait_for(Duration::from_secs(3600), new) else { continue };
        written += requests.len();
        for request in requests {
            let Some(log) = &mut log else { break };
            let news: Vec<_> =
                request.news().iter().map(|t| json!([format!("{:?}", t.role), t.text])).collect();
            let mut line = json!({"path": request.path, "model": request.model, "main": request.main,
                "news": news, "answer": format!("{:?}", request.answer)});
            if bodies {
                line["body"] = request.body;
            }
            writeln!(log, "{line}")?;
        }
    }
}
