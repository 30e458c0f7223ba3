//! How the hub is reached, and what follows from it.

use std::net::IpAddr;

use http::Uri;

/// How the hub is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpOptions {
    public_host: Option<String>,
    public_origin: Option<String>,
    public_tool_list: bool,
}

/// A `public_url` that cannot be one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("public_url must look like https://hub.example.org, without path or query")]
pub struct OptionsError;

impl HttpOptions {
    /// Options for a hub that is reached at `public_url`, and on the machine itself. Without
    /// `public_tool_list`, listing the tools needs a token.
    ///
    /// # Errors
    /// [`OptionsError`] when `public_url` is no origin.
    pub fn new(public_url: Option<&str>, public_tool_list: bool) -> Result<Self, OptionsError> {
        let Some(url) = public_url else {
            return Ok(Self {
                public_host: None,
                public_origin: None,
                public_tool_list,
            });
        };
        let uri: Uri = url
            .trim_end_matches('/')
            .parse()
            .map_err(|_| OptionsError)?;
        let scheme = uri
            .scheme_str()
            .filter(|scheme| matches!(*scheme, "http" | "https"));
        let (scheme, authority) = scheme.zip(uri.authority()).ok_or(OptionsError)?;
        if uri.path() != "/" || uri.query().is_some() || authority.as_str().contains('@') {
            return Err(OptionsError);
        }
        let host = uri.host().ok_or(OptionsError)?.to_ascii_lowercase();
        let origin = format!("{scheme}://{}", authority.as_str().to_ascii_lowercase());
        Ok(Self {
            public_host: Some(host),
            public_origin: Some(origin),
            public_tool_list,
        })
    }

    /// Whether listing the tools needs no token.
    pub fn public_tool_list(&self) -> bool {
        self.public_tool_list
    }

    /// Whether people reach the hub over TLS alone.
    pub(crate) fn is_public_over_tls(&self) -> bool {
        let origin = self.public_origin.as_deref();
        origin.is_some_and(|origin| origin.starts_with("https://"))
    }

    /// Whether `origin` is the very one that the hub, asked for as `host`, is reached at. Unlike
    /// [`Self::serves_origin`] it leaves out other programs of this machine.
    pub(crate) fn is_own_origin(&self, origin: &str, host: &str) -> bool {
        let origin = origin.to_ascii_lowercase();
        let authority = origin.split_once("://").map(|(_, authority)| authority);
        let is_host = authority.is_some_and(|authority| authority == host.to_ascii_lowercase());
        is_host || self.public_origin.as_deref() == Some(origin.as_str())
    }

    /// Whether a request for `host` (with or without a port) is for this hub: its public name, a
    /// loopback name, or an address. A page of another site can make a browser send any name, but
    /// only one that its own site resolves, so an address is safe.
    pub(crate) fn serves_host(&self, host: &str) -> bool {
        let name = host_name(host).to_ascii_lowercase();
        name == "localhost"
            || name.parse::<IpAddr>().is_ok()
            || self.public_host.as_deref() == Some(name.as_str())
    }

    /// Whether a page of `origin` may call the hub that was asked for as `host`.
    pub(crate) fn serves_origin(&self, origin: &str, host: &str) -> bool {
        let origin = origin.to_ascii_lowercase();
        let authority = origin
            .split_once("://")
            .map_or("", |(_, authority)| authority);
        let name = host_name(authority);
        name == "localhost"
            || name
                .parse::<IpAddr>()
                .is_ok_and(|address| address.is_loopback())
            || (!authority.is_empty() && authority == host.to_ascii_lowercase())
            || self.public_origin.as_deref() == Some(origin.as_str())
    }
}

/// The host of an authority without port and brackets.
fn host_name(authority: &str) -> &str {
    if let Some(rest) = authority.strip_prefix('[') {
        return rest.split_once(']').map_or(rest, |(address, _)| address);
    }
    authority
        .rsplit_once(':')
        .map_or(authority, |(host, _)| host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_public_name_loopback_and_addresses_are_served_and_other_names_are_not() {
        let options = HttpOptions::new(Some("https://hub.example.test/"), true).expect("valid");
        for host in [
            "hub.example.test",
            "HUB.example.test:443",
            "127.0.0.1:8787",
            "localhost",
            "[::1]:8787",
            "192.168.1.5:8787",
        ] {
            assert!(options.serves_host(host), "{host}");
        }
        for host in ["evil.example", "hub.example.test.evil.example:80", ""] {
            assert!(!options.serves_host(host), "{host}");
        }
    }

    #[test]
    fn only_pages_of_the_hub_itself_and_of_this_machine_may_call() {
        let options = HttpOptions::new(Some("https://hub.example.test"), true).expect("valid");
        let allowed = |origin| options.serves_origin(origin, "192.168.1.5:8787");
        assert!(allowed("https://hub.example.test"));
        assert!(allowed("http://localhost:6274"));
        assert!(allowed("http://192.168.1.5:8787"));
        for origin in [
            "https://evil.example",
            "http://hub.example.test",
            "null",
            "http://192.168.1.6:8787",
        ] {
            assert!(!allowed(origin), "{origin}");
        }
    }

    #[test]
    fn a_public_url_with_a_path_or_without_a_scheme_is_refused() {
        for url in [
            "hub.example.test",
            "https://h/x",
            "ftp://h",
            "https://u@h",
            "",
        ] {
            assert_eq!(
                HttpOptions::new(Some(url), true),
                Err(OptionsError),
                "{url}"
            );
        }
    }
}
