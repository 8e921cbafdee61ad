//! Addresses to listen on.

use std::net::{Ipv4Addr, SocketAddr};

use super::{Description, Given, Kind};

/// An IP address and a port; port 0 takes a free one. Without a value it is a port on loopback, so that nothing is
/// reachable from outside before somebody said so.
#[derive(Debug, Clone, Copy)]
pub struct Address(pub u16);

impl Kind for Address {
    type Value = SocketAddr;

    fn parse(&self, given: &Given) -> Result<SocketAddr, String> {
        let text = given.single()?;
        text.parse().map_err(|_| {
            format!("must be an IP address and a port, such as 127.0.0.1:{} or [::1]:0, and is '{text}'", self.0)
        })
    }

    fn default(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.0).into()
    }

    fn description(&self) -> Description {
        Description {
            placeholder: "ADDR",
            default: self.default().to_string(),
            range: "IP address and port".into(),
            secret: false,
            switch: false,
        }
    }
}
