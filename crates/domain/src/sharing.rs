//! The sharing rule: when a command may begin on a desktop.

/// What the desktop knows, at this instant, about the session and project of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Consent {
    /// The owner enabled the project on this desktop.
    pub project_enabled: bool,
    /// The session is shared with that project.
    pub session_shared: bool,
    /// The session's slug is the one that the command names.
    pub slug_unchanged: bool,
}

/// Whether a command may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grant {
    /// All three conditions hold.
    Given,
    /// At least one does not: the command completes as cancelled with
    /// [`crate::limits::NO_LONGER_SHARED`].
    Withdrawn,
}

impl Consent {
    /// Consent for a session or project that the desktop does not know.
    pub const NONE: Self = Self {
        project_enabled: false,
        session_shared: false,
        slug_unchanged: false,
    };

    /// Applies the rule of mission.md §3.3: project enabled, session checked, slug unchanged.
    pub const fn grant(self) -> Grant {
        if self.project_enabled && self.session_shared && self.slug_unchanged {
            Grant::Given
        } else {
            Grant::Withdrawn
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_all_three_conditions_together_are_consent() {
        for bits in 0..8 {
            let consent = Consent {
                project_enabled: bits & 1 != 0,
                session_shared: bits & 2 != 0,
                slug_unchanged: bits & 4 != 0,
            };
            let expected = if bits == 7 {
                Grant::Given
            } else {
                Grant::Withdrawn
            };
            assert_eq!(consent.grant(), expected, "{consent:?}");
        }
    }
}
