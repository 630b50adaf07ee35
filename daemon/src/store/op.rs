//! The five operations a commit is made of, and their encoding in the journal.
//!
//! Paths are relative to the store's folder. The encoding is little-endian, length-prefixed and has no gaps, so
//! that every byte of a record is covered by its checksum and every record decodes to itself.

use minder_proto::id::SessionId;

/// One change of one file or folder of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Bytes at the end of a file.
    Append {
        /// The file; for a timeline the folder's active name, whatever the segment is called by now.
        file: String,
        /// For a timeline: the first `seq` of the segment the bytes belong to. 0 for other files.
        segment: u64,
        /// Where they go. A file shorter than this is damage, never padded.
        offset: u64,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// The whole content of a file, put in place by a rename.
    Replace {
        /// The file.
        file: String,
        /// Its content.
        bytes: Vec<u8>,
    },
    /// The file is gone; or the folder of a session in the trash or of its host, with all that is in it.
    Remove {
        /// The file, or `trash/<id>`, or `hosts/<id>`.
        file: String,
    },
    /// The session's active timeline gets its sealed name.
    Seal {
        /// The session's folder, relative to the store.
        dir: String,
        /// First `seq` of the segment.
        first: u64,
    },
    /// The session's folder goes to the trash.
    Retire {
        /// Which session.
        session: SessionId,
    },
}

/// A record of the journal that is not one.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("broken journal record: {0}")]
pub struct Broken(pub &'static str);

impl Op {
    /// The folder, or file directly in the store, that this operation touches first.
    pub fn path(&self) -> String {
        match self {
            Self::Append { file, .. } | Self::Replace { file, .. } | Self::Remove { file } => file.clone(),
            Self::Seal { dir, .. } => dir.clone(),
            Self::Retire { session } => format!("sessions/{session}"),
        }
    }

    /// The session whose folder this takes out of the trash.
    pub fn trashed(&self) -> Option<SessionId> {
        match self {
            Self::Remove { file } => file.strip_prefix("trash/")?.parse().ok(),
            _ => None,
        }
    }

    /// True for a whole folder that goes: a session in the trash, or what its host kept.
    pub fn is_tree(&self) -> bool {
        let of_host =
            |file: &str| file.strip_prefix("hosts/").is_some_and(|id| id.parse::<SessionId>().is_ok());
        self.trashed().is_some() || matches!(self, Self::Remove { file } if of_host(file))
    }

    /// The session whose folder this touches.
    pub fn session(&self) -> Option<SessionId> {
        self.path().strip_prefix("sessions/")?.split('/').next()?.parse().ok()
    }
}

/// Encodes the operations of one commit.
pub fn encode(ops: &[Op]) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    let text = |out: &mut Vec<u8>, bytes: &[u8]| {
        let len = u32::try_from(bytes.len()).expect("a commit is bounded at 64 MiB before it is encoded");
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(bytes);
    };
    for op in ops {
        match op {
            Op::Append { file, segment, offset, bytes } => {
                out.push(1);
                text(&mut out, file.as_bytes());
                out.extend_from_slice(&segment.to_le_bytes());
                out.extend_from_slice(&offset.to_le_bytes());
                text(&mut out, bytes);
            }
            Op::Replace { file, bytes } => {
                out.push(2);
                text(&mut out, file.as_bytes());
                text(&mut out, bytes);
            }
            Op::Remove { file } => {
                out.push(3);
                text(&mut out, file.as_bytes());
            }
            Op::Seal { dir, first } => {
                out.push(4);
                text(&mut out, dir.as_bytes());
                out.extend_from_slice(&first.to_le_bytes());
            }
            Op::Retire { session } => {
                out.push(5);
                text(&mut out, session.to_string().as_bytes());
            }
        }
    }
    out
}

/// Decodes what [`encode`] made. Paths that would leave the store are refused.
pub fn decode(mut bytes: &[u8]) -> Result<Vec<Op>, Broken> {
    let mut ops = Vec::new();
    while let Some((tag, rest)) = bytes.split_first() {
        bytes = rest;
        ops.push(match tag {
            1 => Op::Append {
                file: path(&mut bytes)?,
                segment: number(&mut bytes)?,
                offset: offset(&mut bytes)?,
                bytes: blob(&mut bytes)?.to_vec(),
            },
            2 => Op::Replace { file: path(&mut bytes)?, bytes: blob(&mut bytes)?.to_vec() },
            3 => Op::Remove { file: path(&mut bytes)? },
            4 => Op::Seal { dir: path(&mut bytes)?, first: number(&mut bytes)? },
            5 => Op::Retire {
                session: std::str::from_utf8(blob(&mut bytes)?)
                    .ok()
                    .and_then(|t| t.parse().ok())
                    .ok_or(Broken("a session id that is none"))?,
            },
            _ => return Err(Broken("an unknown operation")),
        });
    }
    Ok(ops)
}

fn number(bytes: &mut &[u8]) -> Result<u64, Broken> {
    let (head, rest) = bytes.split_first_chunk::<8>().ok_or(Broken("it ends within a number"))?;
    *bytes = rest;
    Ok(u64::from_le_bytes(*head))
}

/// A place in a file: what is added to it never overflows.
fn offset(bytes: &mut &[u8]) -> Result<u64, Broken> {
    let offset = number(bytes)?;
    if i64::try_from(offset).is_ok() { Ok(offset) } else { Err(Broken("a place that no file has")) }
}

fn blob<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8], Broken> {
    let (head, rest) = bytes.split_first_chunk::<4>().ok_or(Broken("it ends within a length"))?;
    let len = u32::from_le_bytes(*head) as usize;
    let (blob, rest) = rest.split_at_checked(len).ok_or(Broken("it ends within a text"))?;
    *bytes = rest;
    Ok(blob)
}

fn path(bytes: &mut &[u8]) -> Result<String, Broken> {
    let text = std::str::from_utf8(blob(bytes)?).map_err(|_| Broken("a path that is no text"))?;
    let inside = !text.is_empty() && text.split('/').all(|part| !matches!(part, "" | "." | ".."));
    if inside { Ok(text.to_owned()) } else { Err(Broken("a path outside the store")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<Op> {
        vec![
            Op::Append {
                file: "sessions/x/timeline.jsonl".into(),
                segment: 7,
                offset: 99,
                bytes: b"{}\n".to_vec(),
            },
            Op::Replace { file: "labels/api".into(), bytes: vec![0, 255] },
            Op::Remove { file: "labels/web".into() },
            Op::Seal { dir: "sessions/x".into(), first: 7 },
            Op::Retire { session: SessionId::random() },
        ]
    }

    #[test]
    fn operations_decode_to_themselves_and_any_cut_is_broken() {
        let ops = sample();
        let bytes = encode(&ops);
        assert_eq!(decode(&bytes).unwrap(), ops);
        let mut whole = 0;
        for cut in 0..bytes.len() {
            if decode(&bytes[..cut]).is_ok() {
                whole += 1; // a cut between two operations; the record's length and checksum guard that
            }
        }
        assert_eq!(whole, ops.len());
    }

    #[test]
    fn paths_stay_inside() {
        for evil in ["", "/etc/passwd", "../x", "a/../../x", "a//b", "."] {
            let bytes = encode(&[Op::Remove { file: evil.into() }]);
            assert!(decode(&bytes).is_err(), "{evil}");
        }
    }
}
