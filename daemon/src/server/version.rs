//! What a caller says about itself in its request's head, checked before any method runs.
//!
//! `minder-protocol: N` is the protocol it speaks and `minder-store` the real path of the store it means, with bytes
//! outside printable ASCII as `%XX`. A header that is absent is not checked, so that `curl` can call.

use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use hyper::HeaderMap;
use minder_proto::error::{Fault, Kind};
use minder_proto::rpc::{HEADER_PROTOCOL, HEADER_STORE};

/// What this daemon is, as far as a caller can be at odds with it.
#[derive(Clone, Debug)]
pub struct Served {
    /// The real path of its store.
    pub store: PathBuf,
    /// The protocols it speaks.
    pub protocol: RangeInclusive<u32>,
    /// Its version.
    pub version: &'static str,
}

/// Put into the extensions of a request that no method may see.
#[derive(Clone, Debug)]
pub struct Refused(pub Fault);

impl Served {
    /// Why a request with this head is refused, if it is.
    pub fn check(&self, head: &HeaderMap) -> Option<Refused> {
        self.check_protocol(head).or_else(|| self.check_store(head)).map(Refused)
    }

    fn check_protocol(&self, head: &HeaderMap) -> Option<Fault> {
        let said = head.get(HEADER_PROTOCOL)?.to_str().unwrap_or("?").trim();
        match said.parse::<u32>() {
            Ok(number) => self.misfit(number),
            Err(_) => Some(misfit(
                format!("{HEADER_PROTOCOL} is no number: {said:?}"),
                "send the number that the calling program was built for",
            )),
        }
    }

    /// Why a caller of this protocol cannot be served, if so, and which side to restart.
    pub fn misfit(&self, number: u32) -> Option<Fault> {
        let (min, max) = (self.protocol.start(), self.protocol.end());
        let ours = if min == max { format!("{min}") } else { format!("{min} to {max}") };
        let version = self.version;
        if number > *max {
            return Some(misfit(
                format!("the daemon ({version}) is older: it speaks protocol {ours}, the caller {number}"),
                "minder daemon restart",
            ));
        }
        (number < *min).then(|| {
            misfit(
                format!("the caller is older: it speaks protocol {number}, the daemon ({version}) {ours}"),
                "upgrade or restart the calling program",
            )
        })
    }

    fn check_store(&self, head: &HeaderMap) -> Option<Fault> {
        let said = decode(head.get(HEADER_STORE)?.as_bytes());
        if said == self.store.as_os_str().as_bytes() {
            return None;
        }
        let said = String::from_utf8_lossy(&said);
        Some(misfit(
            format!("this daemon serves the store {}, not {said}", self.store.display()),
            "set MINDER_HOME and MINDER_SOCKET to the same store",
        ))
    }
}

fn misfit(message: String, hint: &str) -> Fault {
    Fault::new(Kind::Version, message).hint(hint)
}

/// Undoes `%XX`; a `%` that is followed by anything else stands for itself.
fn decode(value: &[u8]) -> Vec<u8> {
    let hex = |b: Option<&u8>| b.and_then(|b| char::from(*b).to_digit(16)).and_then(|d| u8::try_from(d).ok());
    let mut plain = Vec::with_capacity(value.len());
    let mut i = 0;
    while i < value.len() {
        match (value[i], hex(value.get(i + 1)), hex(value.get(i + 2))) {
            (b'%', Some(high), Some(low)) => {
                plain.push(high << 4 | low);
                i += 3;
            }
            (byte, ..) => {
                plain.push(byte);
                i += 1;
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(headers: &[(&'static str, &str)]) -> Option<String> {
        let served = Served { store: "/home/ä b/minder".into(), protocol: 3..=4, version: "0.1.0" };
        let mut head = HeaderMap::new();
        for (name, value) in headers {
            head.insert(*name, value.parse().unwrap());
        }
        served.check(&head).map(|r| format!("{} ({})", r.0.message, r.0.hint.unwrap()))
    }

    #[test]
    fn what_fits_or_is_absent_passes() {
        for fits in [
            &[][..],
            &[("minder-protocol", "3")],
            &[("minder-protocol", "4"), ("minder-store", "/home/%C3%A4%20b/minder")],
            &[("minder-store", "/home/%c3%a4 b/minder")],
        ] {
            assert_eq!(refused(fits), None, "{fits:?}");
        }
    }

    #[test]
    fn what_does_not_fit_says_which_side_to_restart() {
        let newer = refused(&[("minder-protocol", "5")]).unwrap();
        assert!(
            newer.contains("the daemon (0.1.0) is older") && newer.contains("minder daemon restart"),
            "{newer}"
        );
        let older = refused(&[("minder-protocol", "2")]).unwrap();
        assert!(older.contains("the caller is older") && older.contains("upgrade"), "{older}");
        for bad in ["", "x", "-1", "99999999999999999999"] {
            assert!(refused(&[("minder-protocol", bad)]).unwrap().contains("no number"), "{bad}");
        }
        let other = refused(&[("minder-store", "/home/c/%zz")]).unwrap();
        assert!(other.contains("/home/ä b/minder, not /home/c/%zz"), "{other}");
    }
}
