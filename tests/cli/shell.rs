//! Commands that speak to a broker, run as a shell would.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread::JoinHandle,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::broker::{Broker, leasehold};

/// How a command ended and what it said.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) code: Option<i32>,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl Ended {
    /// Its stdout, where it ended well.
    pub(super) fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.stdout
    }

    /// Each line of its stdout, as JSON.
    pub(super) fn json(self) -> Vec<Value> {
        self.ok().lines().map(|line| serde_json::from_str(line).expect("JSON on each line")).collect()
    }
}

/// Where commands find the broker.
#[derive(Debug, Clone)]
pub(super) struct Shell {
    address: String,
}

impl Shell {
    /// Commands for this broker.
    pub(super) fn of(broker: &Broker) -> Self {
        Self { address: format!("http://{}", broker.address()) }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = leasehold(arguments);
        command.env("LEASEHOLD_ADDRESS", &self.address).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs a command to its end.
    pub(super) fn run(&self, arguments: &[&str]) -> Ended {
        self.feed(arguments, b"")
    }

    /// Runs a command that gets this on its stdin.
    pub(super) fn feed(&self, arguments: &[&str], stdin: &[u8]) -> Ended {
        let mut child = self.command(arguments).stdin(Stdio::piped()).spawn().expect("the program starts");
        let mut pipe = child.stdin.take().expect("a pipe");
        let input = stdin.to_vec();
        let writer = std::thread::spawn(move || {
            // a command need not read all of it
            pipe.write_all(&input).ok();
        });
        let output = child.wait_with_output().expect("it is our child");
        writer.join().expect("no panic");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        Ended { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// Starts a command that goes on and gets this on its stdin, which stays open.
    pub(super) fn start_fed(&self, arguments: &[&str], stdin: &[u8]) -> (Running, ChildStdin) {
        let mut child = self.command(arguments).stdin(Stdio::piped()).spawn().expect("the program starts");
        let mut pipe = child.stdin.take().expect("a pipe");
        pipe.write_all(stdin).expect("it reads");
        (Running::of(child), pipe)
    }

    /// Starts a command that goes on.
    pub(super) fn start(&self, arguments: &[&str]) -> Running {
        Running::of(self.command(arguments).spawn().expect("the program starts"))
    }
}

/// A command that goes on; killed when dropped.
pub(super) struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
    stderr: Option<JoinHandle<Vec<u8>>>,
}

impl Running {
    fn of(mut child: Child) -> Self {
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut pipe = child.stderr.take().expect("a pipe");
        let stderr = std::thread::spawn(move || {
            let mut said = Vec::new();
            pipe.read_to_end(&mut said).expect("a readable pipe");
            said
        });
        Self { child, stdout, stderr: Some(stderr) }
    }

    /// The next line of its stdout; nothing at the end.
    pub(super) fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.stdout.read_line(&mut line).expect("text");
        (read > 0).then(|| line.trim_end_matches('\n').to_owned())
    }

    /// Its lines until one is this.
    pub(super) fn until(&mut self, wanted: &str) {
        while self.line().expect("it goes on") != wanted {}
    }

    pub(super) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("the process lives");
    }

    /// Waits for its end.
    pub(super) fn end(mut self) -> Ended {
        let mut stdout = String::new();
        self.stdout.read_to_string(&mut stdout).expect("text");
        let status = self.child.wait().expect("it is our child");
        let stderr = self.stderr.take().expect("ended once").join().expect("no panic");
        Ended { code: status.code(), stdout, stderr: String::from_utf8_lossy(&stderr).into_owned() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // where it has ended already there is nothing to kill
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
