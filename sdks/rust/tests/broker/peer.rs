//! A scripted peer, for faults a real broker does not produce: redirects, silence and garbage.

use std::sync::{Arc, Mutex};

use bytes::{Bytes, BytesMut};
use fila_client::wire::{self, opcode, FrameDecoder, Limits};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{crypto, ServerConfig};
use tokio_rustls::TlsAcceptor;

use crate::certificates::Certificates;

/// The bytes one message is answered with, given its opcode, request id and body.
pub type Script = dyn Fn(u8, u32, Bytes) -> Vec<u8> + Send + Sync;

pub struct Peer {
    pub addr: String,
    /// The first byte of every connection.
    firsts: Arc<Mutex<Vec<u8>>>,
    opcodes: Arc<Mutex<Vec<u8>>>,
    accepting: tokio::task::JoinHandle<()>,
}

impl Peer {
    /// One whose script answers with an opcode and a body; `None` says nothing.
    pub async fn start(script: impl Fn(u8, Bytes) -> Option<(u8, Vec<u8>)> + Send + Sync + 'static) -> Peer {
        Peer::listen(None, framed(script)).await
    }

    /// One whose script answers with bytes as they are.
    pub async fn start_raw(script: impl Fn(u8, u32, Bytes) -> Vec<u8> + Send + Sync + 'static) -> Peer {
        Peer::listen(None, Arc::new(script)).await
    }

    /// One that speaks TLS.
    pub async fn start_tls(
        certs: &Certificates,
        script: impl Fn(u8, Bytes) -> Option<(u8, Vec<u8>)> + Send + Sync + 'static,
    ) -> Peer {
        let cert = CertificateDer::from_pem_slice(&certs.read("server.pem")).unwrap();
        let key = PrivateKeyDer::from_pem_slice(&certs.read("server.key")).unwrap();
        let mut config = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![cert], key)
            .unwrap();
        config.alpn_protocols = vec![wire::ALPN.to_vec()];
        Peer::listen(Some(TlsAcceptor::from(Arc::new(config))), framed(script)).await
    }

    async fn listen(tls: Option<TlsAcceptor>, script: Arc<Script>) -> Peer {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap().to_string();
        let (firsts, opcodes) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Vec::new())));
        let (seen_firsts, seen_opcodes) = (firsts.clone(), opcodes.clone());
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (firsts, opcodes) = (seen_firsts.clone(), seen_opcodes.clone());
                let (tls, script) = (tls.clone(), script.clone());
                tokio::spawn(async move {
                    match tls {
                        None => serve(stream, script, firsts, opcodes).await,
                        Some(tls) => {
                            if let Ok(secured) = tls.accept(stream).await {
                                serve(secured, script, firsts, opcodes).await;
                            }
                        }
                    }
                });
            }
        });
        Peer { addr, firsts, opcodes, accepting }
    }

    pub fn connections(&self) -> usize {
        self.firsts.lock().unwrap().len()
    }

    pub fn firsts(&self) -> Vec<u8> {
        self.firsts.lock().unwrap().clone()
    }

    /// How often an operation was received.
    pub fn received(&self, wanted: u8) -> usize {
        self.opcodes.lock().unwrap().iter().filter(|code| **code == wanted).count()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    script: Arc<Script>,
    firsts: Arc<Mutex<Vec<u8>>>,
    opcodes: Arc<Mutex<Vec<u8>>>,
) {
    let mut buf = BytesMut::new();
    let mut decoder = FrameDecoder::new(Limits::default());
    let mut fresh = true;
    while matches!(stream.read_buf(&mut buf).await, Ok(n) if n > 0) {
        if fresh {
            firsts.lock().unwrap().push(buf[0]);
            fresh = false;
        }
        while let Some(next) = decoder.next(&mut buf) {
            let Ok(message) = next else { return };
            opcodes.lock().unwrap().push(message.opcode);
            let answer = match message.opcode {
                opcode::HANDSHAKE => {
                    let ok = wire::HandshakeOk { version: 1, node_id: 1, max_frame_size: 1 << 20 };
                    frame(opcode::HANDSHAKE_OK, message.request_id, &ok)
                }
                opcode::DISCONNECT => return,
                other => script(other, message.request_id, message.body),
            };
            if answer == HANG_UP || stream.write_all(&answer).await.is_err() {
                return;
            }
        }
    }
}

/// What a raw script answers to end the connection.
pub const HANG_UP: &[u8] = b"hang up";

/// One frame.
pub fn frame<B: wire::Body>(code: u8, id: u32, body: &B) -> Vec<u8> {
    let mut frame = Vec::new();
    wire::append_frame(&mut frame, code, id, &wire::encode(body).unwrap(), 1 << 20);
    frame
}

fn framed(script: impl Fn(u8, Bytes) -> Option<(u8, Vec<u8>)> + Send + Sync + 'static) -> Arc<Script> {
    Arc::new(move |code, id, body| {
        let mut frame = Vec::new();
        if let Some((code, body)) = script(code, body) {
            wire::append_frame(&mut frame, code, id, &body, 1 << 20);
        }
        frame
    })
}

/// An answer to every Enqueue: all stored.
pub fn stored(body: Bytes) -> Option<(u8, Vec<u8>)> {
    let request: wire::Enqueue = wire::decode(body).unwrap();
    let item =
        wire::EnqueueResultItem { code: 0, message_id: "0190a0b1-c2d3-7e4f-8a5b-6c7d8e9f0a1b".to_owned() };
    let reply = wire::EnqueueResult { results: vec![item; request.messages.len()] };
    Some((opcode::ENQUEUE_RESULT, wire::encode(&reply).unwrap()))
}

/// An Error that names another node.
pub fn not_leader(leader: &str) -> Option<(u8, Vec<u8>)> {
    let metadata = vec![("leader_addr".to_owned(), leader.to_owned())];
    let error = wire::Error { code: 12, message: "another node leads".to_owned(), metadata };
    Some((opcode::ERROR, wire::encode(&error).unwrap()))
}
