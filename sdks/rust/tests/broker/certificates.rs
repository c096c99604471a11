//! A certificate authority and certificates for 127.0.0.1, made with openssl.

use std::path::{Path, PathBuf};
use std::process::Command;

pub struct Certificates {
    dir: PathBuf,
}

impl Certificates {
    pub fn make(name: &str) -> Certificates {
        let dir = std::env::temp_dir().join(format!("fila-rust-certs-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let made = Certificates { dir };
        let ca = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=test-ca";
        openssl(&made.dir, &format!("{ca} -keyout ca.key -out ca.pem"));
        std::fs::write(made.dir.join("names"), "subjectAltName=IP:127.0.0.1,DNS:localhost\n").unwrap();
        for who in ["server", "client"] {
            let key = "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
            openssl(&made.dir, &format!("{key} -subj /CN={who} -keyout {who}.key -out {who}.csr"));
            let sign = "x509 -req -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names";
            openssl(&made.dir, &format!("{sign} -in {who}.csr -out {who}.pem"));
        }
        made
    }

    pub fn path(&self, name: &str) -> String {
        self.dir.join(name).to_str().unwrap().to_owned()
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.dir.join(name)).unwrap()
    }
}

impl Drop for Certificates {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn openssl(dir: &Path, arguments: &str) {
    let output = Command::new("openssl").current_dir(dir).args(arguments.split(' ')).output().unwrap();
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
}
