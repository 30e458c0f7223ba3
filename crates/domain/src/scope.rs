//! What a connection may do.

use std::fmt;
use std::str::FromStr;

/// One permission of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Reading: projects, shared Graph sessions, the connection's own runs.
    Read,
    /// Starting and cancelling runs.
    Run,
}

impl Scope {
    /// Every scope, in the order in which they are shown.
    pub const ALL: [Self; 2] = [Self::Read, Self::Run];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "osfoundry:read",
            Self::Run => "osfoundry:run",
        }
    }
}

/// A text that names no scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown scope: use osfoundry:read or osfoundry:run")]
pub struct ParseScopeError;

impl FromStr for Scope {
    type Err = ParseScopeError;

    fn from_str(text: &str) -> Result<Self, ParseScopeError> {
        Self::ALL
            .into_iter()
            .find(|scope| scope.as_str() == text)
            .ok_or(ParseScopeError)
    }
}

/// A set of scopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scopes {
    read: bool,
    run: bool,
}

impl Scopes {
    /// Both scopes.
    pub const ALL: Self = Self {
        read: true,
        run: true,
    };

    /// Whether `scope` is in the set.
    pub const fn contains(self, scope: Scope) -> bool {
        match scope {
            Scope::Read => self.read,
            Scope::Run => self.run,
        }
    }

    /// The set with `scope` in it.
    #[must_use]
    pub const fn with(self, scope: Scope) -> Self {
        match scope {
            Scope::Read => Self {
                read: true,
                run: self.run,
            },
            Scope::Run => Self {
                read: self.read,
                run: true,
            },
        }
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        scopes.into_iter().fold(Self::default(), Self::with)
    }
}

impl fmt::Display for Scopes {
    /// The scopes as OAuth writes them: names separated by single spaces.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for scope in Scope::ALL.into_iter().filter(|scope| self.contains(*scope)) {
            if !first {
                f.write_str(" ")?;
            }
            f.write_str(scope.as_str())?;
            first = false;
        }
        Ok(())
    }
}

impl FromStr for Scopes {
    type Err = ParseScopeError;

    fn from_str(text: &str) -> Result<Self, ParseScopeError> {
        text.split_ascii_whitespace().map(str::parse).collect()
    }
}
