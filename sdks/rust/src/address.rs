//! Reads an address as a user writes it.

const DEFAULT_PORT: u16 = 5555;

/// Where a node is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
    /// The user wrote `https://`.
    pub(crate) encrypted: bool,
}

impl Address {
    /// Reads `host:port`, `host` or `[ipv6]:port`. A leading `http://` or `https://` is dropped.
    pub(crate) fn parse(text: &str) -> Result<Address, String> {
        let mut rest = text.trim();
        let mut encrypted = false;
        for (scheme, tls) in [("http://", false), ("https://", true)] {
            if rest.get(..scheme.len()).is_some_and(|head| head.eq_ignore_ascii_case(scheme)) {
                rest = rest[scheme.len()..].trim_end_matches('/');
                encrypted = tls;
                break;
            }
        }
        let (host, port) =
            split(rest).ok_or_else(|| format!("address {text:?}: write host:port or [ipv6]:port"))?;
        if host.is_empty() {
            return Err(format!("address {text:?} has no host; write host:port, for example localhost:5555"));
        }
        let port = match port {
            None => DEFAULT_PORT,
            Some(digits) => match digits.parse() {
                Ok(port) if port > 0 => port,
                _ => return Err(format!("address {text:?}: {digits:?} is not a port from 1 to 65535")),
            },
        };
        Ok(Address { host: host.to_owned(), port, encrypted })
    }

    /// `host:port`, with brackets around an IPv6 address.
    pub(crate) fn text(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

fn split(rest: &str) -> Option<(&str, Option<&str>)> {
    if let Some(inner) = rest.strip_prefix('[') {
        let (host, after) = inner.split_once(']')?;
        return match after.strip_prefix(':') {
            Some(port) => Some((host, Some(port))),
            None => after.is_empty().then_some((host, None)),
        };
    }
    match rest.split_once(':') {
        Some((_, port)) if port.contains(':') => None,
        Some((host, port)) => Some((host, Some(port))),
        None => Some((rest, None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_host_and_perhaps_a_port_and_a_scheme() {
        for (text, expected, encrypted) in [
            ("localhost", "localhost:5555", false),
            ("broker:7000", "broker:7000", false),
            ("[::1]:7000", "[::1]:7000", false),
            ("[::1]", "[::1]:5555", false),
            ("http://broker:7000/", "broker:7000", false),
            ("HTTPS://broker", "broker:5555", true),
        ] {
            let address = Address::parse(text).unwrap();
            assert_eq!((address.text().as_str(), address.encrypted), (expected, encrypted), "{text}");
        }
    }

    #[test]
    fn an_address_that_makes_no_sense_is_refused_with_its_text() {
        for text in ["", ":5555", "host:", "host:0", "host:70000", "host:x", "::1", "[::1", "[::1]x"] {
            assert!(Address::parse(text).unwrap_err().contains(&format!("{text:?}")), "{text}");
        }
    }
}
