//! A real broker in a directory of its own.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

const READY: Duration = Duration::from_secs(60);

/// A `fila-server` process. It keeps its port across restarts, so that clients find it again.
pub struct Broker {
    pub addr: String,
    pub dir: PathBuf,
    env: Vec<(String, String)>,
    process: Option<Child>,
}

impl Broker {
    pub fn start(env: &[(&str, &str)]) -> Broker {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("fila-rust-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let dir = std::env::temp_dir().join(name);
        fs::create_dir_all(&dir).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let mut broker = Broker { addr: port.to_string(), dir, env, process: None };
        broker.restart();
        broker
    }

    /// Starts it on its data directory. It must not be running.
    pub fn restart(&mut self) {
        let port_file = self.dir.join("port");
        let _ = fs::remove_file(&port_file);
        let log = fs::File::create(self.dir.join("log")).unwrap();
        let mut command = Command::new(binary());
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("FILA_")) {
            command.env_remove(name);
        }
        command
            .current_dir(&self.dir)
            .env("FILA_SERVER__LISTEN_ADDR", &self.addr)
            .env("FILA_PORT_FILE", &port_file)
            .env("FILA_DATA_DIR", self.dir.join("data"))
            .envs(self.env.iter().cloned())
            .stdout(Stdio::from(log.try_clone().unwrap()))
            .stderr(Stdio::from(log));
        self.process = Some(
            command.spawn().unwrap_or_else(|e| panic!("{}: {e}; set FILA_SERVER_BIN", binary().display())),
        );
        let end = Instant::now() + READY;
        while !port_file.exists() {
            let running = self.process.as_mut().is_some_and(|process| process.try_wait().unwrap().is_none());
            let log = || fs::read_to_string(self.dir.join("log")).unwrap_or_default();
            assert!(running && Instant::now() < end, "the broker did not start:\n{}", log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Ends it without warning.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.kill();
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// One broker for the tests that run at the same time; it ends with the last of them.
pub fn shared() -> Arc<Broker> {
    static SHARED: Mutex<Weak<Broker>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap_or_else(|e| e.into_inner());
    shared.upgrade().unwrap_or_else(|| {
        let broker = Arc::new(Broker::start(&[]));
        *shared = Arc::downgrade(&broker);
        broker
    })
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn binary() -> PathBuf {
    std::env::var_os("FILA_SERVER_BIN").map_or_else(|| root().join(".venv/bin/fila-server"), PathBuf::from)
}
