//! A broker in a process of its own.

use std::{
    fs::File,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{Outcome, postgres::free_port};

/// How the names of options begin in the environment.
const OPTION: &str = "LEASEHOLD_";

pub(crate) struct Broker {
    process: Child,
    address: SocketAddr,
    http: SocketAddr,
    directory: TempDir,
}

impl Broker {
    /// Starts `leasehold serve` on a database, with options as `LEASEHOLD_*` variables, and waits until it is ready.
    pub(crate) async fn start(program: &Path, database: &str, options: &[(&str, &str)]) -> Outcome<Self> {
        let local = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let (address, http, directory) = (local(free_port()?), local(free_port()?), tempfile::tempdir()?);
        let log = File::create(directory.path().join("broker.log"))?;
        let mut command = Command::new(program);
        // What is set for the one who measures is not for the broker that is measured.
        for name in std::env::vars_os().map(|(name, _)| name).filter(|name| name.to_string_lossy().starts_with(OPTION))
        {
            command.env_remove(name);
        }
        command
            .args(["serve", "--migrate"])
            .env("LEASEHOLD_DATABASE_URL", database)
            .env("LEASEHOLD_LISTEN", address.to_string())
            .env("LEASEHOLD_HTTP_LISTEN", http.to_string())
            .env("LEASEHOLD_DATA_DIR", directory.path())
            .envs(options.iter().copied())
            .stdout(log.try_clone()?)
            .stderr(log)
            .stdin(Stdio::null());
        let mut broker = Self { process: command.spawn()?, address, http, directory };
        broker.wait_until_ready().await?;
        Ok(broker)
    }

    async fn wait_until_ready(&mut self) -> Outcome<()> {
        let give_up = Instant::now() + Duration::from_secs(30);
        while !self.is_ready().await {
            if let Some(status) = self.process.try_wait()? {
                return Err(format!("the broker ended with {status}:\n{}", self.log()?).into());
            }
            if Instant::now() > give_up {
                return Err(format!("the broker did not become ready:\n{}", self.log()?).into());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    async fn is_ready(&self) -> bool {
        self.get("/readyz").await.is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
    }

    async fn get(&self, path: &str) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(self.http).await?;
        let request = format!("GET {path} HTTP/1.1\r\nhost: broker\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    }

    /// Rows that a pass of its upkeep changed or removed since its start.
    pub(crate) async fn upkeep_rows(&self, pass: &str) -> Outcome<u64> {
        let (metrics, series) =
            (self.get("/metrics").await?, format!("leasehold_upkeep_rows_total{{pass=\"{pass}\"}} "));
        let value = metrics.lines().find_map(|line| line.strip_prefix(&series));
        Ok(value.map(|value| value.trim().parse()).transpose()?.unwrap_or_default())
    }

    /// What the broker has logged.
    pub(crate) fn log(&self) -> Outcome<String> {
        Ok(std::fs::read_to_string(self.directory.path().join("broker.log"))?)
    }

    /// Lines of the broker's log that tell of trouble, at most ten of them.
    pub(crate) fn trouble(&self) -> Outcome<Vec<String>> {
        let log = self.log()?;
        let bad =
            log.lines().filter(|line| line.contains("WARN") || line.contains("ERROR") || line.contains("panicked"));
        Ok(bad.take(10).map(str::to_owned).collect())
    }

    /// Where gRPC is served.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Process id.
    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        end(&mut self.process, Signal::TERM, Duration::from_secs(30));
    }
}

/// Ends a child politely, and after `patience` not politely.
pub(super) fn end(child: &mut Child, signal: Signal, patience: Duration) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let asked = pid.is_some_and(|pid| kill_process(pid, signal).is_ok());
    let give_up = Instant::now() + patience;
    while asked && Instant::now() < give_up {
        match child.try_wait() {
            Ok(None) => std::thread::sleep(Duration::from_millis(20)),
            Ok(Some(_)) | Err(_) => return,
        }
    }
    if child.kill().is_ok() {
        drop(child.wait());
    }
}
