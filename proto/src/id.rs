//! Identifiers. Sessions have random ids (UUIDv4), so that a short prefix tells them apart; everything else
//! has a UUIDv7, whose order is the order of acceptance and whose *end* is what tells two of one instant apart.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::stamp::Stamp;

/// Fewest characters of an id that a person may type to name a thing.
pub const MIN_PARTIAL: usize = 6;

/// A session's minder id: a random UUID, shown short as its first 8 characters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(Uuid);

/// A message's id: a UUIDv7, shown short as its last 8 characters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MessageId(Uuid);

impl SessionId {
    /// A new random id.
    pub fn random() -> Self {
        Self(Uuid::new_v4())
    }

    /// The id with the given bytes; for tests and generators that must be repeatable.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(uuid::Builder::from_random_bytes(bytes).into_uuid())
    }

    /// The first 8 characters.
    pub fn short(&self) -> String {
        self.0.as_hyphenated().to_string()[..8].to_owned()
    }
}

/// A turn's id: a UUIDv7, shown short as its last 8 characters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TurnId(Uuid);

macro_rules! in_order {
    ($name:ident) => {
        impl $name {
            /// A new id, later in order than every id this process made before.
            pub fn now() -> Self {
                Self(Uuid::now_v7())
            }

            /// The last 8 characters.
            pub fn short(&self) -> String {
                let text = self.0.as_hyphenated().to_string();
                text[text.len() - 8..].to_owned()
            }

            /// When it was made, where it says so: whoever runs turns may bring ids of another kind.
            pub fn made(&self) -> Option<Stamp> {
                let time = self.0.get_timestamp().filter(|_| self.0.get_version_num() == 7)?;
                let (seconds, nanos) = time.to_unix();
                let millis = seconds.checked_mul(1_000)?.checked_add(u64::from(nanos) / 1_000_000)?;
                i64::try_from(millis).ok().map(Stamp::from_millis)
            }

            /// True if `text`, at least [`MIN_PARTIAL`] hexadecimal digits, is the end of this id (or all of it).
            pub fn ends_with(&self, text: &str) -> bool {
                let mut buffer = Uuid::encode_buffer();
                let whole = self.0.as_hyphenated().encode_lower(&mut buffer).as_bytes();
                let tail = whole.len().checked_sub(text.len()).map(|at| &whole[at..]);
                text.len() >= MIN_PARTIAL && tail.is_some_and(|t| t.eq_ignore_ascii_case(text.as_bytes()))
            }
        }
    };
}
in_order!(MessageId);
in_order!(TurnId);

macro_rules! text_form {
    ($name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.as_hyphenated().fmt(f)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.as_hyphenated().fmt(f)
            }
        }
        impl FromStr for $name {
            type Err = uuid::Error;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                // Only the hyphenated form is an id; UUIDs have others that would confuse prefixes.
                let id = Uuid::try_parse(text)?;
                if id.as_hyphenated().to_string() == text.to_ascii_lowercase() {
                    Ok(Self(id))
                } else {
                    Uuid::try_parse("not hyphenated").map(Self)
                }
            }
        }
    };
}
text_form!(SessionId);
text_form!(MessageId);
text_form!(TurnId);

/// Who sends or receives: a session, the person, or (as a sender only) minder itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Party {
    /// A governed session.
    Session(SessionId),
    /// The person whose daemon this is.
    Operator,
    /// minder: notices, dead letters.
    Minder,
}

impl Party {
    /// The session, where it is one.
    pub fn session(&self) -> Option<SessionId> {
        match self {
            Self::Session(id) => Some(*id),
            Self::Operator | Self::Minder => None,
        }
    }
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session(id) => id.fmt(f),
            Self::Operator => f.write_str("operator"),
            Self::Minder => f.write_str("minder"),
        }
    }
}

impl FromStr for Party {
    type Err = uuid::Error;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "operator" => Ok(Self::Operator),
            "minder" => Ok(Self::Minder),
            id => id.parse().map(Self::Session),
        }
    }
}

impl Serialize for Party {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Party {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_forms_name_the_telling_end() {
        let session: SessionId = "5f1c2d4a-90c3-4f0e-8a17-c2b6d1e4f700".parse().unwrap();
        assert_eq!(session.short(), "5f1c2d4a");
        let message: MessageId = "0199c2d4-90c3-7f0e-8a17-c2b67be21c09".parse().unwrap();
        assert_eq!(message.short(), "7be21c09");
        assert!(message.ends_with("e21c09") && !message.ends_with("21c09") && !message.ends_with("0199c2"));
    }

    #[test]
    fn only_the_hyphenated_form_is_an_id() {
        assert!("5f1c2d4a90c34f0e8a17c2b6d1e4f700".parse::<SessionId>().is_err());
        assert!("{5f1c2d4a-90c3-4f0e-8a17-c2b6d1e4f700}".parse::<SessionId>().is_err());
    }

    #[test]
    fn parties_are_plain_strings() {
        for text in ["\"operator\"", "\"minder\"", "\"5f1c2d4a-90c3-4f0e-8a17-c2b6d1e4f700\""] {
            let party: Party = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&party).unwrap(), text);
        }
        assert!(serde_json::from_str::<Party>("\"somebody\"").is_err());
    }
}
