//! Payloads from stdin and files.

use std::{
    fs::File,
    io::{BufRead, BufReader, IsTerminal as _, Read as _},
    os::fd::AsFd as _,
    path::Path,
};

use tokio::sync::mpsc;

use crate::cli::{Exit, broker::Failed, exit::note};

/// No broker takes larger payloads, whatever its options.
const MAX_PAYLOAD: usize = 3 << 20;
/// Payload bytes of one call, but for a single larger line: a request may have 4 MiB.
const MAX_BATCH_BYTES: usize = 1 << 20;
/// Lines read ahead.
const AHEAD: usize = 1_000;

/// A line without its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line(pub(super) Vec<u8>);

/// The lines of stdin, as they come.
pub(super) struct Lines {
    read: mpsc::Receiver<Result<Line, Failed>>,
    /// Belongs into the next batch.
    kept: Option<Line>,
    failed: Option<Failed>,
    bytes: Option<u64>,
}

impl Lines {
    /// Begins to read, on a thread of its own: a pipe may be quiet for long, and nobody waits for that thread at the end.
    pub(super) fn read() -> Result<Self, Failed> {
        let stdin = std::io::stdin();
        if stdin.is_terminal() {
            note(&"payloads, one a line, until Ctrl-D:");
        }
        let file = stdin.as_fd().try_clone_to_owned().map(File::from);
        let bytes =
            file.and_then(|file| file.metadata()).ok().filter(std::fs::Metadata::is_file).map(|file| file.len());
        Self::of(BufReader::new(stdin), bytes)
    }

    fn of(mut source: impl BufRead + Send + 'static, bytes: Option<u64>) -> Result<Self, Failed> {
        let (sender, read) = mpsc::channel(AHEAD);
        let reader = std::thread::Builder::new().name("stdin".into()).spawn(move || {
            // until the end, a fault, or nobody wants more
            while let Some(line) = read_line(&mut source).transpose() {
                let last = line.is_err();
                if sender.blocking_send(line).is_err() || last {
                    break;
                }
            }
        });
        reader.map_err(|error| Failed::new(Exit::Failure, format!("no thread to read stdin: {error}")))?;
        Ok(Self { read, kept: None, failed: None, bytes })
    }

    /// How many bytes there are, where stdin is a file.
    pub(super) fn bytes(&self) -> Option<u64> {
        self.bytes
    }

    /// What has come, at least one line and at most `most`, and no more bytes than one call may have. Empty at the end. A fault comes
    /// after the lines before it.
    pub(super) async fn batch(&mut self, most: usize) -> Result<Vec<Line>, Failed> {
        let mut batch: Vec<Line> = Vec::new();
        let mut size = 0;
        while batch.len() < most && self.failed.is_none() {
            let next = match self.kept.take() {
                Some(line) => Some(Ok(line)),
                None if batch.is_empty() => self.read.recv().await,
                None => self.read.try_recv().ok(),
            };
            match next {
                Some(Ok(line)) if !batch.is_empty() && size + line.0.len() > MAX_BATCH_BYTES => {
                    self.kept = Some(line);
                    break;
                }
                Some(Ok(line)) => {
                    size += line.0.len();
                    batch.push(line);
                }
                Some(Err(failed)) => self.failed = Some(failed),
                None => break,
            }
        }
        match self.failed.take() {
            Some(failed) if batch.is_empty() => Err(failed),
            failed => {
                self.failed = failed;
                Ok(batch)
            }
        }
    }
}

/// The next line; nothing at the end.
fn read_line(source: &mut impl BufRead) -> Result<Option<Line>, Failed> {
    let mut line = Vec::new();
    let most = u64::try_from(MAX_PAYLOAD + 2).unwrap_or(u64::MAX);
    source
        .take(most)
        .read_until(b'\n', &mut line)
        .map_err(|error| Failed::new(Exit::Failure, format!("stdin cannot be read: {error}")))?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    }
    if line.len() > MAX_PAYLOAD {
        return Err(Failed::new(Exit::Invalid, format!("a line of stdin is longer than {MAX_PAYLOAD} bytes")));
    }
    Ok(Some(Line(line)))
}

/// All of a file, or of stdin for `-`.
pub(super) fn whole(path: &Path) -> Result<Vec<u8>, Failed> {
    let (source, name): (Box<dyn std::io::Read>, _) = if path.as_os_str() == "-" {
        (Box::new(std::io::stdin()), "stdin".to_owned())
    } else {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|error| Failed::new(Exit::Failure, format!("{name}: {error}")))?;
        (Box::new(file), name)
    };
    let mut payload = Vec::new();
    let most = u64::try_from(MAX_PAYLOAD + 1).unwrap_or(u64::MAX);
    source
        .take(most)
        .read_to_end(&mut payload)
        .map_err(|error| Failed::new(Exit::Failure, format!("{name}: {error}")))?;
    if payload.len() > MAX_PAYLOAD {
        return Err(Failed::new(Exit::Invalid, format!("{name} is longer than {MAX_PAYLOAD} bytes")));
    }
    Ok(payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(source: &'static [u8], most: usize) -> Vec<Vec<Vec<u8>>> {
        let mut lines = Lines::of(source, None).expect("a thread");
        let mut batches = Vec::new();
        loop {
            let batch = lines.batch(most).await.expect("no fault");
            if batch.is_empty() {
                return batches;
            }
            batches.push(batch.into_iter().map(|line| line.0).collect());
        }
    }

    #[tokio::test]
    async fn every_line_is_a_payload_byte_for_byte_and_the_last_one_needs_no_end() {
        let lines: Vec<Vec<u8>> = all(b"a\n\n\xff\r\nlast", 1).await.concat();
        assert_eq!(lines, [&b"a"[..], b"", b"\xff\r", b"last"]);
    }

    #[tokio::test]
    async fn a_batch_holds_no_more_bytes_than_one_call_may_have_unless_a_line_is_larger() {
        let text: &'static [u8] = Box::leak(
            [vec![b'x'; 800 << 10], b"\n".to_vec(), vec![b'y'; 800 << 10], b"\n".to_vec(), vec![b'z'; 2 << 20]]
                .concat()
                .into_boxed_slice(),
        );
        let sizes: Vec<Vec<usize>> =
            all(text, 1_000).await.iter().map(|batch| batch.iter().map(Vec::len).collect()).collect();
        assert_eq!(sizes, [[800 << 10], [800 << 10], [2 << 20]]);
    }

    #[tokio::test]
    async fn a_line_that_no_broker_takes_is_a_fault_after_the_lines_before_it() {
        let text: &'static [u8] = Box::leak([b"a\n".to_vec(), vec![b'x'; MAX_PAYLOAD + 1]].concat().into_boxed_slice());
        let mut lines = Lines::of(text, None).expect("a thread");
        assert_eq!(lines.batch(10).await.expect("the first line"), [Line(b"a".to_vec())]);
        assert_eq!(lines.batch(10).await.expect_err("too long").exit, Exit::Invalid);
    }
}
