//! What a process that the daemon starts is given to be known by: `MINDER_SESSION` says which session it is, `MINDER_TOKEN`
//! proves it. A token is new for every start, and only its checksum is kept.

use sha1::{Digest, Sha1};
use uuid::Uuid;

pub use minder_proto::caller::{SESSION_VAR as SESSION, TOKEN_VAR as TOKEN};

/// A new token: 244 random bits.
pub fn fresh() -> String {
    format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
}

/// The checksum by which a token is known again. A token is random and long, so that the sum tells nothing of it.
pub fn sum(token: &str) -> String {
    format!("{:x}", Sha1::digest(token.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_new_each_time_and_known_by_its_sum() {
        let (one, two) = (fresh(), fresh());
        assert_ne!(one, two);
        assert_eq!(one.len(), 64);
        assert_eq!(sum("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert_ne!(sum(&one), sum(&two));
    }
}
