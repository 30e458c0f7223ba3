//! Identities. Each kind is its own type, so that one cannot be handed in for another.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

/// A text that is not an id of the expected kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a valid {0}")]
pub struct ParseIdError(&'static str);

macro_rules! uuid_ids {
    ($($(#[$doc:meta])* $name:ident = $kind:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Uuid);

        impl $name {
            /// An id that nothing has: what a malformed one is looked up as, so that it takes the
            /// same way as an unknown one.
            pub const UNKNOWN: Self = Self(Uuid::nil());

            /// Wraps 16 bytes that came from `ambient`.
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Uuid::from_bytes(bytes))
            }

            /// The 16 bytes of the id.
            pub const fn as_bytes(&self) -> &[u8; 16] {
                self.0.as_bytes()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.as_hyphenated().fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                Uuid::try_parse(text).map(Self).map_err(|_| ParseIdError($kind))
            }
        }
    )*};
}

uuid_ids! {
    /// The person whose workspace it is.
    OwnerId = "owner id";
    /// A project of an owner; connections and shares are granted to projects.
    ProjectId = "project id";
    /// One grant of one MCP client to one owner's workspace (a connected agent).
    ConnectionId = "connection id";
    /// A machine that comes for its work.
    DesktopId = "desktop id";
    /// One data folder on one machine; a desktop identity is bound to the first one it meets.
    WorkerId = "worker id";
    /// One queued Graph run.
    CommandId = "command id";
    /// The run itself on the desktop; the fencing token of everything that follows a start.
    ExecutionId = "execution id";
    /// One conversation that linked itself to a project.
    ChatLinkId = "chat link id";
    /// One piece of work for linked chats.
    TaskId = "task id";
    /// One taking of a task by a chat; the fencing token of its result.
    ClaimId = "claim id";
    /// One browser that is signed in to the owner's console.
    SignInId = "sign-in id";
}

/// The permanent identity of one saved Graph on one device: `gs_` and 32 lowercase hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GraphSessionId(u128);

impl GraphSessionId {
    /// An id that no session has: what a malformed one is looked up as.
    pub const UNKNOWN: Self = Self(0);

    /// Wraps 16 bytes that came from `ambient`.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(bytes))
    }

    /// The 16 bytes of the id.
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }
}

impl fmt::Display for GraphSessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "gs_{:032x}", self.0)
    }
}

impl fmt::Debug for GraphSessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for GraphSessionId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        const KIND: ParseIdError = ParseIdError("Graph session id");
        let digits = text.strip_prefix("gs_").ok_or(KIND)?;
        let lowercase_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if digits.len() != 32 || !digits.bytes().all(lowercase_hex) {
            return Err(KIND);
        }
        u128::from_str_radix(digits, 16).map(Self).map_err(|_| KIND)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_id_is_gs_and_32_lowercase_hex_digits() {
        let id = GraphSessionId::from_bytes([0xab; 16]);
        assert_eq!(id.to_string(), format!("gs_{}", "ab".repeat(16)));
        assert_eq!(id.to_string().parse(), Ok(id));
        for wrong in [
            "",
            "gs_",
            "gs_AB",
            "ab",
            &format!("gs_{}", "AB".repeat(16)),
            "gs_+0",
        ] {
            assert!(wrong.parse::<GraphSessionId>().is_err(), "{wrong}");
        }
        let signed = format!("gs_+{}", "a".repeat(31));
        assert!(signed.parse::<GraphSessionId>().is_err());
    }

    #[test]
    fn an_upper_case_uuid_is_the_same_id() {
        let id = CommandId::from_bytes([0xcd; 16]);
        assert_eq!(id.to_string().to_uppercase().parse(), Ok(id));
        assert!("not-a-uuid".parse::<CommandId>().is_err());
    }
}
