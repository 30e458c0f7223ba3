//! The configuration: file, then environment, then flags; later ones win.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use callboard_agents::{Agents, ProviderConfig};
use callboard_ambient::{Clock, Entropy};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::paths;

/// Where the hub listens unless told otherwise: this machine only.
pub(crate) const DEFAULT_LISTEN: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8787);

/// The file, all of it optional.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// How the hub is reached.
    pub(crate) hub: HubSection,
    /// How the desktop works.
    pub(crate) desktop: DesktopSection,
    /// Models, by the name that Graphs use.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) providers: BTreeMap<String, ProviderConfig>,
}

/// `[hub]`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct HubSection {
    /// Where to listen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) listen: Option<SocketAddr>,
    /// The address that people use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) public_url: Option<String>,
    /// Whether listing the tools needs no token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) public_tool_list: Option<bool>,
    /// How long a claim lasts where another chat could take over, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) task_lease_seconds: Option<u64>,
}

/// `[desktop]`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct DesktopSection {
    /// Ask every 20 s only.
    pub(crate) poll_only: bool,
    /// How many commands run at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) slots: Option<u64>,
    /// The provider that an agent without a profile uses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) default_provider: Option<String>,
}

impl Config {
    /// Reads `named`, or the data folder's own file if there is one.
    pub(crate) fn read(data: &Path, named: Option<&PathBuf>) -> Result<Self, Failure> {
        let default = paths::config_file(data);
        let file = named.unwrap_or(&default);
        let text = match std::fs::read_to_string(file) {
            Ok(text) => text,
            // A data folder that is none is told by whoever opens it.
            Err(error)
                if named.is_none()
                    && matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                return Ok(Self::default());
            }
            Err(error) => {
                return Err(Failure::usage(format!(
                    "cannot read {}: {error}",
                    file.display()
                )));
            }
        };
        toml::from_str(&text).map_err(|error| {
            Failure::usage(format!(
                "{} is not a configuration: {error}",
                file.display()
            ))
        })
    }

    /// The model providers.
    pub(crate) fn agents(&self, clock: &Clock, entropy: &Entropy) -> Result<Agents, Failure> {
        if self.providers.is_empty() {
            return Ok(Agents::none());
        }
        let default = self.desktop.default_provider.as_deref();
        Agents::from_config(&self.providers, default, clock.clone(), entropy.clone())
            .map_err(|error| Failure::usage(format!("[providers]: {error}")))
    }
}
