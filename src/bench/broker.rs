//! A broker of the measurement's own, in a process of its own.

use std::{
    fs::File,
    io,
    os::unix::process::CommandExt as _,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use secrecy::ExposeSecret as _;
use tempfile::TempDir;
use tokio::time::sleep;

use super::{
    BenchError, BenchOptions,
    database::{Database, Kept},
};

/// How the names of options begin in the environment.
const OPTION: &str = "LEASEHOLD_";
const START: Duration = Duration::from_secs(60);
const END: Duration = Duration::from_secs(60);
/// Between two looks at the process.
const LOOK: Duration = Duration::from_millis(20);

/// A broker that serves. Dropped before [`Own::end`], it is killed.
pub(super) struct Own {
    child: Child,
    address: String,
    schema: Option<String>,
    /// Its log, and its database where that is the embedded one.
    _directory: TempDir,
}

impl Own {
    /// Starts one and waits until it is ready.
    pub(super) async fn start(options: &BenchOptions, database: Option<&Database>) -> Result<Self, BenchError> {
        let directory = tempfile::tempdir()?;
        let log = directory.path().join("broker.log");
        let out = File::create(&log)?;
        let mut command = Command::new(&options.program);
        // What is set for the one who measures is not for the broker that is measured.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with(OPTION)) {
            command.env_remove(name);
        }
        command
            .args(["serve", "--migrate"])
            .env("LEASEHOLD_LISTEN", "127.0.0.1:0")
            .env("LEASEHOLD_HTTP_LISTEN", "127.0.0.1:0")
            .env("LEASEHOLD_DATA_DIR", directory.path())
            .env("LEASEHOLD_LOG_FORMAT", "json")
            .stdin(Stdio::null())
            // Ctrl-C is for the measurement, which still wants to count what is left
            .process_group(0)
            .stdout(out.try_clone()?)
            .stderr(out);
        let mut schema = None;
        if let (Some(url), Some(database)) = (&options.database, database) {
            let name = format!("leasehold_bench_{:08x}", rand::random::<u32>());
            command.env("LEASEHOLD_DATABASE_URL", url.expose_secret());
            match database.kept() {
                Kept::InSchema => command.env("LEASEHOLD_DATABASE_SCHEMA", &name),
                Kept::BehindPrefix => command.env("LEASEHOLD_DATABASE_TABLE_PREFIX", format!("{name}_")),
            };
            schema = Some(name);
        }
        for (name, value) in &options.settings {
            command.env(format!("{OPTION}{}", name.replace('.', "_").to_uppercase()), value);
        }
        let child = command.spawn()?;
        let mut own = Self { child, address: String::new(), schema, _directory: directory };
        own.address = own.wait_until_ready(log).await?;
        Ok(own)
    }

    async fn wait_until_ready(&mut self, log: PathBuf) -> Result<String, BenchError> {
        let give_up = Instant::now() + START;
        loop {
            let said = std::fs::read_to_string(&log)?;
            if let Some(address) = said.contains("\"ready: ").then(|| served_at(&said)).flatten() {
                return Ok(format!("http://{address}"));
            }
            let ended = self.child.try_wait()?;
            if ended.is_some() || Instant::now() > give_up {
                let how =
                    ended.map_or_else(|| "did not become ready".to_owned(), |status| format!("ended with {status}"));
                return Err(BenchError::Unreachable(format!("the broker {how}; it said:\n{}", last(&said))));
            }
            sleep(LOOK).await;
        }
    }

    /// Where it serves gRPC.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it made in the database is in this schema, or behind this prefix.
    pub(super) fn schema(&self) -> Option<&str> {
        self.schema.as_deref()
    }

    /// Ends it politely, and not politely where that takes too long.
    pub(super) async fn end(mut self) {
        let asked = kill_process(Pid::from_child(&self.child), Signal::TERM).is_ok();
        let give_up = Instant::now() + END;
        while asked && Instant::now() < give_up && matches!(self.child.try_wait(), Ok(None)) {
            sleep(LOOK).await;
        }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let killed: io::Result<()> = self.child.kill();
        if killed.is_ok() {
            drop(self.child.wait());
        }
    }
}

/// The address in the line that says where it serves.
fn served_at(log: &str) -> Option<String> {
    log.lines().find_map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).ok()?;
        line["grpc"].as_str().map(str::to_owned)
    })
}

/// The end of what it said.
fn last(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(5)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_read_from_the_line_that_has_it() {
        let log = "{\"message\":\"starting\"}\nnot JSON\n{\"message\":\"serving\",\"grpc\":\"127.0.0.1:4711\"}\n";
        assert_eq!(served_at(log).as_deref(), Some("127.0.0.1:4711"));
        assert_eq!(served_at("nothing"), None);
    }
}
