//! Which host a chat lives in, as far as that shows, and the published words for its tasks.

use super::{Ended, Status};

/// The program that a conversation lives in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Host {
    /// Claude, on the web, on a desktop or in a terminal.
    Claude,
    /// ChatGPT.
    ChatGpt,
    /// Anything else.
    Other,
}

impl Host {
    /// The host of a client, told by its name.
    pub fn of_client(name: &str) -> Self {
        let name = name.to_lowercase();
        if name.contains("claude") {
            Self::Claude
        } else if name.contains("chatgpt") || name.contains("openai") {
            Self::ChatGpt
        } else {
            Self::Other
        }
    }
}

/// What the owner reads beside a task (mission §4). `host` is that of the chats that it waits for.
pub const fn status_text(status: Status, host: Host) -> &'static str {
    match (status, host) {
        (Status::Queued, Host::Claude) => "Waiting for Claude",
        (Status::Queued, Host::ChatGpt | Host::Other) => "Waiting for host chat",
        (Status::Claimed, _) => "Claimed by host chat",
        (Status::Over(Ended::Completed), _) => "Completed",
        (Status::Over(Ended::Failed), _) => "Failed",
        (Status::Over(Ended::Cancelled), _) => "Cancelled",
        (Status::Over(Ended::Expired), _) => "Expired",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_words_are_given_to_the_letter() {
        let words = |host| Status::ALL.map(|status| status_text(status, host));
        let published = [
            "Waiting for host chat",
            "Claimed by host chat",
            "Completed",
            "Failed",
            "Cancelled",
            "Expired",
        ];
        assert_eq!(words(Host::Other), published);
        assert_eq!(
            words(Host::of_client("Claude Code"))[0],
            "Waiting for Claude"
        );
        assert_eq!(words(Host::of_client("openai-mcp"))[0], published[0]);
    }
}
