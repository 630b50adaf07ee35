//! `minder`: the client.

fn main() -> std::process::ExitCode {
    minder_client::run()
}
