//! Where a collector listens.

use super::{Description, Given, Kind};

const RULE: &str = "must be http://HOST:PORT or https://HOST:PORT, without a path, a user or a password";

/// The address of a collector that takes OTLP over gRPC, in plain text.
#[derive(Debug, Clone, Copy)]
pub struct Collector;

impl Kind for Collector {
    type Value = String;

    fn parse(&self, given: &Given) -> Result<String, String> {
        let text = given.single()?;
        let uri: http::Uri = text.parse().map_err(|_| RULE)?;
        let authority = uri.authority().ok_or(RULE)?;
        let scheme = uri.scheme_str().filter(|scheme| ["http", "https"].contains(scheme)).ok_or(RULE)?;
        let fine = authority.port_u16().is_some()
            && !authority.host().is_empty()
            && !authority.as_str().contains('@')
            && matches!(uri.path_and_query().map(http::uri::PathAndQuery::as_str), None | Some("/"));
        if fine { Ok(format!("{scheme}://{authority}")) } else { Err(RULE.into()) }
    }

    fn default(&self) -> String {
        String::new()
    }

    fn description(&self) -> Description {
        Description {
            placeholder: "URL",
            default: String::new(),
            range: "`http://HOST:PORT`, `https://HOST:PORT`".into(),
            secret: false,
            switch: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_is_a_host_and_a_port() {
        let parse = |text: &str| Collector.parse(&Given::One(text.into()));
        for (text, expected) in [
            ("http://localhost:4317", "http://localhost:4317"),
            ("http://collector.monitoring:4317/", "http://collector.monitoring:4317"),
            ("https://collector.example:4317/", "https://collector.example:4317"),
            ("http://[::1]:4317", "http://[::1]:4317"),
        ] {
            assert_eq!(parse(text).as_deref(), Ok(expected));
        }
        for bad in [
            "localhost:4317",
            "ftp://x:4317",
            "https://x",
            "http://x",
            "http://x:0x",
            "http://u:p@x:4317",
            "http://x:1/v1",
            "http://",
        ] {
            assert_eq!(parse(bad), Err(RULE.to_owned()), "{bad}");
        }
    }
}
