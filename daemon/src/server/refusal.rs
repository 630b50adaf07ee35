//! The answers that the server gives by itself, before or instead of a method's.

use jsonrpsee::types::ErrorObjectOwned;
use serde_json::json;

/// The code of kind `busy`.
const BUSY: i32 = -32_055;
/// The code of kind `version`.
const VERSION: i32 = -32_060;

/// Too many requests of one connection at once.
pub fn busy(limit: usize) -> ErrorObjectOwned {
    let data = json!({"kind": "busy", "retryable": true});
    ErrorObjectOwned::owned(
        BUSY,
        format!("this connection has {limit} requests in flight already"),
        Some(data),
    )
}

/// Caller and daemon do not fit; `hint` says which side to restart.
pub fn version(message: String, hint: &str) -> ErrorObjectOwned {
    let data = json!({"kind": "version", "retryable": false, "hint": hint});
    ErrorObjectOwned::owned(VERSION, message, Some(data))
}

/// A method panicked: a fault in minder.
pub fn fault(method: &str) -> ErrorObjectOwned {
    let code = jsonrpsee::types::ErrorCode::InternalError.code();
    let data = json!({"kind": "internal", "retryable": false, "hint": "minder daemon logs"});
    ErrorObjectOwned::owned(code, format!("a fault in minder: {method} failed; the log has more"), Some(data))
}
