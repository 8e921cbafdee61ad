//! An HTTP/2 client that does as it is told and nothing else.

use std::net::SocketAddr;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::soon;

pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// A frame that came in.
#[derive(Debug)]
pub(super) struct Came {
    pub(super) kind: u8,
    flags: u8,
    pub(super) payload: Vec<u8>,
}

pub(super) struct RawClient {
    pub(super) stream: TcpStream,
}

impl RawClient {
    /// Connects and sends nothing.
    pub(super) async fn connect(address: SocketAddr) -> Self {
        Self { stream: TcpStream::connect(address).await.expect("connected") }
    }

    /// Connects, sends the preface and settings with a stream window of `window` bytes.
    pub(super) async fn open(address: SocketAddr, window: u32) -> Self {
        let mut client = Self::connect(address).await;
        client.stream.write_all(PREFACE).await.expect("sent");
        let mut settings = vec![0, 4];
        settings.extend(window.to_be_bytes());
        client.send(SETTINGS, 0, 0, &settings).await;
        client
    }

    async fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let mut frame = u32::try_from(payload.len()).expect("short").to_be_bytes()[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        self.stream.write_all(&frame).await.expect("sent");
    }

    /// Begins a call; `message` is all of it, or none of it is sent.
    pub(super) async fn call(&mut self, stream: u32, method: &str, more: &[(&str, &str)], message: Option<&[u8]>) {
        let path = format!("/leasehold.v1.QueueService/{method}");
        let mut headers = Vec::new();
        let always = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", path.as_str()),
            (":authority", "x"),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
        ];
        for (name, value) in always.iter().chain(more) {
            headers.push(0); // literal, not indexed, name as text
            for text in [name, value] {
                headers.push(u8::try_from(text.len()).expect("short"));
                headers.extend(text.as_bytes());
            }
        }
        self.send(HEADERS, END_HEADERS, stream, &headers).await;
        if let Some(message) = message {
            let mut data = vec![0];
            data.extend(u32::try_from(message.len()).expect("short").to_be_bytes());
            data.extend(message);
            self.send(DATA, END_STREAM, stream, &data).await;
        }
    }

    /// The next frame, or nothing where the connection has ended.
    pub(super) async fn next(&mut self) -> Option<Came> {
        let mut head = [0; 9];
        soon(self.stream.read_exact(&mut head)).await.ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; usize::try_from(length).expect("24 bits")];
        soon(self.stream.read_exact(&mut payload)).await.ok()?;
        Some(Came { kind: head[3], flags: head[4], payload })
    }

    /// Reads up to the next frame of `kind`, answering pings where `polite`.
    pub(super) async fn next_of(&mut self, kind: u8, polite: bool) -> Option<Came> {
        loop {
            let frame = self.next().await?;
            if frame.kind == PING && frame.flags & ACK == 0 && polite {
                self.send(PING, ACK, 0, &frame.payload).await;
            }
            if frame.kind == kind {
                return Some(frame);
            }
        }
    }
}
