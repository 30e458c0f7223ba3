//! How a command fails: what happened, then one thing to do.

/// The exit code of a command that did not succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The thing asked for failed.
    Failed = 1,
    /// The command line or a file it names is wrong.
    Usage = 2,
    /// Something cannot be reached or started.
    Unreachable = 3,
}

/// A failure as it is shown: one sentence, perhaps details below it, perhaps one hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// What happened.
    pub(crate) message: String,
    /// One command or step that helps.
    pub(crate) hint: Option<String>,
    /// The exit code.
    pub(crate) exit: Exit,
    /// The data already printed tells a program all of it.
    pub(crate) told: bool,
}

impl Failure {
    /// The thing asked for failed.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: None,
            exit: Exit::Failed,
            told: false,
        }
    }

    /// The command line or a file it names is wrong.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: None,
            exit: Exit::Usage,
            told: false,
        }
    }

    /// Something cannot be reached or started.
    pub(crate) fn cannot_start(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: None,
            exit: Exit::Unreachable,
            told: false,
        }
    }

    /// The same failure, which a program has read in the data already.
    pub(crate) fn told(self) -> Self {
        Self { told: true, ..self }
    }

    /// The same failure with a hint when no answer came. A refusal is an answer.
    pub(crate) fn if_lost(self, hint: impl Into<String>) -> Self {
        match self.exit {
            Exit::Unreachable => self.hint(hint),
            Exit::Failed | Exit::Usage => self,
        }
    }

    /// The same failure with a hint.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }
}

/// An error and its sources in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

/// The innermost source of an error: what really happened, below the layers that passed it on.
pub(crate) fn root_cause(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
