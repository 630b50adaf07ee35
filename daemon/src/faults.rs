//! What happens to a panic: it is logged once with its place and a backtrace. Whoever must go on catches it
//! (`server::guard` for a method), so the hook never ends the process.

use std::backtrace::Backtrace;
use std::panic::PanicHookInfo;

/// Sends every panic of this process to the log instead of standard error.
pub fn log_panics() {
    std::panic::set_hook(Box::new(record));
}

/// Writes one panic to the log.
pub fn record(info: &PanicHookInfo<'_>) {
    let place = info.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
    let backtrace = Backtrace::force_capture();
    tracing::error!(%place, %backtrace, "panic: {}", message(info.payload()));
}

/// The text of a panic, where it has one.
pub fn message(payload: &(dyn std::any::Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("(no text)")
}
