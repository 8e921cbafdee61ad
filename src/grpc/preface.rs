//! The first bytes of a connection.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

/// Bytes of HTTP/2's client preface.
const PREFACE_BYTES: usize = 24;

/// A stream whose reads fail when the client has not sent its whole preface in time. The HTTP/2 layer would wait for ever,
/// a graceful shutdown included.
pub(super) struct Preface<T> {
    stream: T,
    missing: usize,
    /// Gone once the preface is complete: an idle stream needs no timer.
    deadline: Option<Pin<Box<Sleep>>>,
    whole: Arc<AtomicBool>,
}

impl<T> Preface<T> {
    /// Gives the client `patience` for its preface.
    pub(super) fn new(stream: T, patience: Duration) -> Self {
        Self { stream, missing: PREFACE_BYTES, deadline: Some(Box::pin(sleep(patience))), whole: Arc::default() }
    }

    /// Becomes true once the preface is whole.
    pub(super) fn whole(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.whole)
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Preface<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        let Some(deadline) = &mut self.deadline else {
            return read;
        };
        if read.is_pending() && deadline.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "no HTTP/2 preface in time")));
        }
        self.missing = self.missing.saturating_sub(buf.filled().len() - before);
        if self.missing == 0 {
            self.deadline = None;
            self.whole.store(true, Relaxed);
        }
        read
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Preface<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
