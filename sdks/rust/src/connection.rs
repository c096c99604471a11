//! One TCP connection, from dialling to the end of the handshake.

use std::collections::HashMap;
use std::io;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::address::Address;
use crate::core::Config;
use crate::wire::{self, opcode, FrameDecoder, Incoming, Limits};
use crate::{Error, Result};

const READ_BYTES: usize = 64 << 10;
/// Memory reserved at once on a peer's word.
const TRUSTED_BYTES: usize = 1 << 20;
/// A broker that announces less could not be talked to.
const FRAME_BYTES_MIN: u32 = 1024;
/// The first byte of a TLS alert.
const TLS_ALERT: u8 = 0x15;

type ReadHalf = Box<dyn AsyncRead + Send + Unpin>;
type WriteHalf = Box<dyn AsyncWrite + Send + Unpin>;

/// A connection after its handshake.
pub(crate) struct Connection {
    pub(crate) reader: FrameReader,
    pub(crate) writer: WriteHalf,
    pub(crate) frame_max: usize,
    pub(crate) node_id: u64,
}

/// Takes operations off a connection.
pub(crate) struct FrameReader {
    source: ReadHalf,
    buf: BytesMut,
    frames: FrameDecoder,
}

/// Why there is no further operation.
pub(crate) enum ReadError {
    Frame(wire::FrameError),
    Io(io::Error),
    Ended,
}

impl FrameReader {
    fn new(source: ReadHalf) -> FrameReader {
        FrameReader { source, buf: BytesMut::new(), frames: FrameDecoder::new(Limits::default()) }
    }

    /// The next operation that has arrived already.
    pub(crate) fn ready(&mut self) -> Option<Result<Incoming, wire::FrameError>> {
        self.frames.next(&mut self.buf)
    }

    /// Waits for more bytes.
    pub(crate) async fn fill(&mut self) -> Result<usize, ReadError> {
        // A long frame gets its memory as its bytes arrive, not on the strength of its header.
        let wanted = self.frames.lacks(&self.buf).clamp(READ_BYTES / 4, TRUSTED_BYTES);
        if self.buf.capacity() - self.buf.len() < wanted {
            self.buf.reserve(wanted.max(READ_BYTES));
        }
        match self.source.read_buf(&mut self.buf).await {
            Ok(0) => Err(ReadError::Ended),
            Ok(n) => Ok(n),
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Err(ReadError::Ended), // TLS without its goodbye
            Err(e) => Err(ReadError::Io(e)),
        }
    }

    async fn next(&mut self) -> Result<Incoming, ReadError> {
        loop {
            match self.ready() {
                Some(Ok(message)) => return Ok(message),
                Some(Err(broken)) => return Err(ReadError::Frame(broken)),
                None => self.fill().await?,
            };
        }
    }
}

/// Opens a connection and shakes hands, within the connect timeout.
pub(crate) async fn connect(addr: &Address, config: &Config) -> Result<Connection> {
    match tokio::time::timeout(config.options.connect_timeout, open(addr, config)).await {
        Ok(result) => result,
        Err(_) => Err(failed(
            addr,
            format!("no handshake within {:?}; is it a Fila broker?", config.options.connect_timeout),
        )),
    }
}

async fn open(addr: &Address, config: &Config) -> Result<Connection> {
    let tcp = match TcpStream::connect((addr.host.as_str(), addr.port)).await {
        Ok(tcp) => tcp,
        Err(e) => return Err(explain(addr, config, e)),
    };
    let _ = tcp.set_nodelay(true); // frames are written whole
    let (source, writer): (ReadHalf, WriteHalf) = match &config.tls {
        None => {
            let (source, writer) = tcp.into_split();
            (Box::new(source), Box::new(writer))
        }
        Some(tls) => {
            let secured =
                crate::tls::secure(tls, &addr.host, tcp).await.map_err(|e| explain(addr, config, e))?;
            let (source, writer) = tokio::io::split(secured);
            (Box::new(source), Box::new(writer))
        }
    };
    shake_hands(addr, config, FrameReader::new(source), writer).await
}

async fn shake_hands(
    addr: &Address,
    config: &Config,
    mut reader: FrameReader,
    mut writer: WriteHalf,
) -> Result<Connection> {
    let hello = wire::Handshake { version: wire::VERSION, api_key: config.options.api_key.clone() };
    let body = wire::encode(&hello).map_err(|e| Error::invalid("connect", e))?;
    let mut frame = Vec::new();
    wire::append_frame(&mut frame, opcode::HANDSHAKE, 0, &body, wire::FRAME_BYTES_MAX);
    let sent = async {
        writer.write_all(&frame).await?;
        writer.flush().await
    };
    sent.await.map_err(|e| explain(addr, config, e))?;
    if let Err(ReadError::Io(e)) = reader.fill().await {
        return Err(explain(addr, config, e));
    }
    if config.tls.is_none() && reader.buf.first() == Some(&TLS_ALERT) {
        return Err(failed(
            addr,
            "it speaks TLS and this client does not; use with_tls or with_tls_ca_cert".to_owned(),
        )
        .lasting());
    }
    let answer = match reader.next().await {
        Ok(answer) => answer,
        Err(ReadError::Frame(broken)) => {
            return Err(failed(addr, format!("it does not speak FIBP ({broken})")).because(broken).lasting())
        }
        Err(ReadError::Io(e)) => return Err(explain(addr, config, e)),
        Err(ReadError::Ended) => return Err(explain(addr, config, io::ErrorKind::UnexpectedEof.into())),
    };
    let unreadable = |e: wire::BodyError| {
        let what = wire::name(answer.opcode);
        Error::protocol(format!("{} sent a {what} that does not parse: {e}", addr.text())).during("connect")
    };
    match answer.opcode {
        opcode::HANDSHAKE_OK => {
            let welcome: wire::HandshakeOk = wire::decode(answer.body.clone()).map_err(unreadable)?;
            if welcome.max_frame_size < FRAME_BYTES_MIN {
                let text = format!("{} allows frames of {} bytes only", addr.text(), welcome.max_frame_size);
                return Err(Error::protocol(text).during("connect"));
            }
            let frame_max = welcome.max_frame_size as usize;
            reader.frames.set_frame_bytes(frame_max);
            Ok(Connection { reader, writer, frame_max, node_id: welcome.node_id })
        }
        opcode::ERROR => Err(refusal(answer.body.clone()).map_err(unreadable)?.during("connect")),
        opcode::DISCONNECT => Err(explain(addr, config, io::ErrorKind::UnexpectedEof.into())),
        other => Err(Error::protocol(format!(
            "{} does not speak FIBP: {} came instead of HandshakeOk",
            addr.text(),
            wire::name(other)
        ))
        .during("connect")),
    }
}

/// Reads an Error frame's body.
pub(crate) fn refusal(body: bytes::Bytes) -> Result<Error, wire::BodyError> {
    let error: wire::Error = wire::decode(body)?;
    let metadata: HashMap<String, String> = error.metadata.into_iter().collect();
    Ok(Error::refused(error.code, &error.message, "", metadata))
}

fn failed(addr: &Address, why: String) -> Error {
    Error::connect_failed(format!("cannot connect to {}: {why}", addr.text()))
}

/// Says in words for people why a broker cannot be reached.
fn explain(addr: &Address, config: &Config, error: io::Error) -> Error {
    if let Some(why) = crate::tls::diagnose(&error) {
        return failed(addr, why).because(error).lasting();
    }
    let why = match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused; is the broker running there?".to_owned(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
            let hint = if config.tls.is_none() { "; does it expect TLS?" } else { "" };
            format!("it closed the connection before the handshake was done{hint}")
        }
        _ => error.to_string(),
    };
    failed(addr, why).because(error)
}
