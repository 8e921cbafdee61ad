//! A broker as a process of its own.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    process::{Child, ChildStderr, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tonic::transport::{Channel, Endpoint};

/// The program with an empty environment, so that nobody's variables have a say.
pub(super) fn leasehold(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
    command.env_clear().args(arguments).stdin(Stdio::null());
    command
}

/// A broker that serves on ports of its own; killed when dropped.
pub(super) struct Broker {
    child: Child,
    stderr: BufReader<ChildStderr>,
    /// Said before it said where it serves: the order of the two is not fixed.
    said: Vec<String>,
    grpc: SocketAddr,
    http: SocketAddr,
    _directory: TempDir,
}

impl Broker {
    /// Starts one and waits until it has said where it serves.
    pub(super) fn start(arguments: &[&str]) -> Self {
        Self::start_at("127.0.0.1:0", arguments)
    }

    /// The same, with gRPC at this address.
    pub(super) fn start_at(address: &str, arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut command = leasehold(&["serve", "--listen", address, "--http-listen", "127.0.0.1:0"]);
        command.args(["--log-format", "json"]).arg("--data-dir").arg(directory.path()).args(arguments);
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the program starts");
        let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut said = Vec::new();
        let serving = line_with(&mut stderr, "\"serving\"", &mut said);
        let address = |field: &str| serving[field].as_str().and_then(|text| text.parse().ok()).expect("an address");
        let (grpc, http) = (address("grpc"), address("http"));
        Self { child, stderr, said, grpc, http, _directory: directory }
    }

    /// Waits for a log line that holds `text`, unless it was there already.
    pub(super) fn wait_for(&mut self, text: &str) {
        if !self.said.iter().any(|line| line.contains(text)) {
            line_with(&mut self.stderr, text, &mut self.said);
        }
    }

    /// Where it serves gRPC.
    pub(super) fn address(&self) -> SocketAddr {
        self.grpc
    }

    /// A gRPC channel to it.
    pub(super) async fn channel(&self) -> Channel {
        Endpoint::from_shared(format!("http://{}", self.grpc)).expect("a URI").connect().await.expect("it listens")
    }

    pub(super) fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("the process lives");
    }

    /// Waits for its end: exit code, and how long it took.
    pub(super) fn end(&mut self) -> (Option<i32>, Duration) {
        let began = Instant::now();
        // its pipe is read to the end, or a broker with much to say would wait for us
        std::io::copy(&mut self.stderr, &mut std::io::sink()).expect("a readable pipe");
        let status = self.child.wait().expect("it is our child");
        (status.code(), began.elapsed())
    }

    /// Status line and body of what the second port answers.
    pub(super) fn get(&self, path: &str) -> (String, String) {
        let mut stream = TcpStream::connect(self.http).expect("the second port listens");
        write!(stream, "GET {path} HTTP/1.0\r\nHost: x\r\n\r\n").expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        let (head, body) = answer.split_once("\r\n\r\n").expect("HTTP");
        (head.lines().next().unwrap_or_default().to_owned(), body.to_owned())
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // where it has ended already there is nothing to kill
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// The next line that holds `text`; those before it go to `passed`.
fn line_with(stderr: &mut BufReader<ChildStderr>, text: &str, passed: &mut Vec<String>) -> serde_json::Value {
    loop {
        let mut line = String::new();
        let read = stderr.read_line(&mut line).expect("log lines are text");
        assert_ne!(read, 0, "the broker ended before it said {text}");
        if line.contains(text) {
            return serde_json::from_str(&line).expect("log lines are JSON");
        }
        passed.push(line);
    }
}
