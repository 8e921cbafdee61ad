//! A command as a process: a group of its own, the payload on its stdin, the end of its stderr kept.

use std::{
    io,
    os::fd::{AsFd as _, OwnedFd},
    os::unix::process::CommandExt as _,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use rustix::process::{Pid, Signal as Kill, kill_process_group, test_kill_process_group};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::unix::pipe,
    signal::unix::{Signal, SignalKind, signal},
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

use super::Plan;

/// Bytes of stderr that are kept. The broker keeps 4 KiB of an error from its beginning, and what the exit was stands before this.
const TAIL: usize = 3_800;
const PIECE: usize = 8 << 10;
/// How long stderr may stay open after the command's end, as it does where the command left something running.
const LINGER: Duration = Duration::from_millis(500);
/// Between two looks at a group that is to end.
const LOOK: Duration = Duration::from_millis(20);

/// A command that runs. Dropped before its end, it is killed with all its group.
pub(super) struct Process {
    child: Child,
    group: Pid,
    exits: Signal,
    status: Option<ExitStatus>,
    stderr: JoinHandle<()>,
    kept: Kept,
}

/// The end of what a command wrote to stderr.
type Kept = Arc<Mutex<Vec<u8>>>;

impl Process {
    /// Starts the plan's command.
    pub(super) fn start(plan: &Arc<Plan>, payload: Bytes, variables: Vec<(&'static str, String)>) -> io::Result<Self> {
        // heard from before the start on, or a command that is quick would end unnoticed
        let exits = signal(SignalKind::child())?;
        let stdout = if plan.json { Stdio::from(io::stderr().as_fd().try_clone_to_owned()?) } else { Stdio::inherit() };
        let mut child = Command::new("sh")
            .arg("-c")
            .arg(&plan.command)
            .envs(variables)
            .stdin(Stdio::piped())
            .stdout(stdout)
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let group = Pid::from_child(&child);
        let kept = Kept::default();
        let pipes = child.stdin.take().zip(child.stderr.take());
        let started = pipes.ok_or_else(|| io::Error::other("a command has no pipes")).and_then(|(stdin, stderr)| {
            let stdin = pipe::Sender::from_owned_fd(OwnedFd::from(stdin))?;
            let stderr = pipe::Receiver::from_owned_fd(OwnedFd::from(stderr))?;
            tokio::spawn(feed(stdin, payload));
            Ok(tokio::spawn(tail(stderr, plan.clone(), kept.clone())))
        });
        match started {
            Ok(stderr) => Ok(Self { child, group, exits, status: None, stderr, kept }),
            Err(error) => {
                child.kill()?;
                child.wait()?;
                Err(error)
            }
        }
    }

    /// Waits for its end. May be dropped and called again.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.status {
                return Ok(status);
            }
            self.status = self.child.try_wait()?;
            if self.status.is_none() {
                self.exits.recv().await;
            }
        }
    }

    /// Ends it and its group: SIGTERM, and SIGKILL where something of it is left after `kill_after`.
    pub(super) async fn stop(&mut self, kill_after: Duration) -> io::Result<ExitStatus> {
        self.signal(Kill::TERM);
        let deadline = Instant::now() + kill_after;
        let status = timeout(kill_after, self.wait()).await;
        while Instant::now() < deadline && test_kill_process_group(self.group).is_ok() {
            sleep(LOOK).await;
        }
        self.signal(Kill::KILL);
        match status {
            Ok(status) => status,
            Err(_) => self.wait().await,
        }
    }

    /// The end of what it wrote to stderr.
    pub(super) async fn tail(mut self) -> String {
        timeout(LINGER, &mut self.stderr).await.ok();
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let text = String::from_utf8_lossy(&kept);
        let text = text.trim();
        // what is no text has grown
        let cut = (text.len().saturating_sub(TAIL)..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text[cut..].to_owned()
    }

    fn signal(&self, kill: Kill) {
        // fails where the group has ended, which is what is wanted
        kill_process_group(self.group, kill).ok();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stderr.abort();
        if self.status.is_none() && matches!(self.child.try_wait(), Ok(None)) {
            self.signal(Kill::KILL);
            self.child.wait().ok();
        }
    }
}

/// Writes the payload. A command need not read it.
async fn feed(mut stdin: pipe::Sender, payload: Bytes) {
    stdin.write_all(&payload).await.ok();
}

/// Passes stderr on and keeps its end.
async fn tail(mut stderr: pipe::Receiver, plan: Arc<Plan>, kept: Kept) {
    let mut piece = vec![0; PIECE];
    while let Ok(read) = stderr.read(&mut piece).await
        && read > 0
    {
        {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend_from_slice(&piece[..read]);
            let past = kept.len().saturating_sub(TAIL);
            kept.drain(..past);
        }
        plan.relay.pass(Bytes::copy_from_slice(&piece[..read])).await;
    }
}
