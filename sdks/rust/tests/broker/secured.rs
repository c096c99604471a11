//! TLS and API keys.

use std::collections::HashMap;
use std::time::Duration;

use fila_client::{ConnectOptions, CreateApiKeyOptions, CreateQueueOptions, Error, FilaClient, Permission};

use crate::broker::{shared, Broker};
use crate::certificates::Certificates;
use crate::peer::{not_leader, Peer};
use crate::soon;

fn tls_broker(certs: &Certificates, mutual: bool) -> Broker {
    let (cert, key, ca) = (certs.path("server.pem"), certs.path("server.key"), certs.path("ca.pem"));
    let mut env = vec![("FILA_TLS__CERT_FILE", cert.as_str()), ("FILA_TLS__KEY_FILE", key.as_str())];
    if mutual {
        env.push(("FILA_TLS__CA_FILE", ca.as_str()));
    }
    Broker::start(&env)
}

#[tokio::test]
async fn tls_trusts_the_given_authority_and_nobody_else() {
    let certs = Certificates::make("trusted");
    let broker = tls_broker(&certs, false);
    let options = ConnectOptions::new(&broker.addr).with_tls_ca_cert(certs.read("ca.pem"));
    let client = FilaClient::connect_with_options(options).await.unwrap();
    client.create_queue("q", CreateQueueOptions::default()).await.unwrap();
    client.enqueue("q", HashMap::new(), "x").await.unwrap();

    let others = Certificates::make("others");
    for options in [
        ConnectOptions::new(&broker.addr).with_tls_ca_cert(others.read("ca.pem")),
        ConnectOptions::new(&broker.addr).with_tls(),
    ] {
        let error = FilaClient::connect_with_options(options).await.unwrap_err();
        assert!(matches!(error, Error::ConnectFailed(_)), "{error}");
        assert!(error.to_string().contains("certificate cannot be verified"), "{error}");
    }
    let error = FilaClient::connect(&broker.addr).await.unwrap_err();
    assert!(matches!(error, Error::ConnectFailed(_)) && error.to_string().contains("TLS"), "{error}");
}

#[tokio::test]
async fn tls_to_a_plaintext_port_fails_at_once() {
    let broker = shared();
    let certs = Certificates::make("plaintext");
    let options = ConnectOptions::new(&broker.addr).with_tls_ca_cert(certs.read("ca.pem"));
    let error = soon(FilaClient::connect_with_options(options)).await.unwrap_err();
    assert!(matches!(error, Error::ConnectFailed(_)), "{error}");
}

#[tokio::test]
async fn a_client_certificate_is_shown_where_the_broker_wants_one() {
    let certs = Certificates::make("mutual");
    let broker = tls_broker(&certs, true);
    let with_ca = ConnectOptions::new(&broker.addr).with_tls_ca_cert(certs.read("ca.pem"));
    let identified = with_ca.clone().with_tls_identity(certs.read("client.pem"), certs.read("client.key"));
    FilaClient::connect_with_options(identified).await.unwrap().list_queues().await.unwrap();
    let error = FilaClient::connect_with_options(with_ca).await.unwrap_err();
    assert!(matches!(error, Error::ConnectFailed(_)), "{error}");
}

#[tokio::test]
async fn certificates_that_cannot_be_used_are_refused_before_connecting() {
    for options in [
        ConnectOptions::new("localhost:1").with_tls_ca_cert("no PEM"),
        ConnectOptions::new("localhost:1").with_tls_identity("no PEM", "none either"),
    ] {
        let error = FilaClient::connect_with_options(options).await.unwrap_err();
        assert!(
            matches!(error, Error::InvalidArgument(_)) && error.to_string().contains("certificate"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_redirect_never_falls_back_to_plaintext() {
    let leader = Peer::start(|_, _| None).await; // it speaks plaintext only
    let certs = Certificates::make("redirect");
    let named = leader.addr.clone();
    let follower = Peer::start_tls(&certs, move |_, _| not_leader(&named)).await;
    let options =
        ConnectOptions::new(&follower.addr).with_tls_ca_cert(certs.read("ca.pem")).with_api_key("secret");
    let client =
        FilaClient::connect_with_options(options).await.unwrap().with_timeout(Duration::from_secs(5));
    let error = soon(client.enqueue("q", HashMap::new(), "x")).await.unwrap_err();
    assert!(matches!(error, Error::ConnectFailed(_) | Error::Timeout(_) | Error::NotLeader(_)), "{error}");
    let firsts = leader.firsts();
    assert!(!firsts.is_empty() && firsts.iter().all(|first| *first == 0x16), "no TLS hello: {firsts:?}");
}

#[tokio::test]
async fn keys_and_permissions_decide_and_a_revoked_key_ends_streams_with_its_error() {
    let broker = Broker::start(&[("FILA_AUTH__BOOTSTRAP_APIKEY", "boss-key-for-tests")]);
    let error = FilaClient::connect(&broker.addr).await.unwrap_err();
    assert!(matches!(error, Error::Unauthorized(_)), "{error}");
    let options = ConnectOptions::new(&broker.addr).with_api_key("boss-key-for-tests");
    assert!(!format!("{options:?}").contains("boss-key"));
    let boss = FilaClient::connect_with_options(options).await.unwrap();
    boss.create_queue("allowed", CreateQueueOptions::default()).await.unwrap();
    boss.create_queue("denied", CreateQueueOptions::default()).await.unwrap();
    let key = boss.create_api_key("worker", CreateApiKeyOptions::default()).await.unwrap();
    assert!(!format!("{key:?}").contains(&key.key));
    let permissions = ["produce", "consume"].map(|kind| Permission::new(kind, "allowed"));
    boss.set_acl(&key.id, permissions.clone()).await.unwrap();
    assert_eq!(boss.get_acl(&key.id).await.unwrap().permissions, permissions);
    assert!(boss.list_api_keys().await.unwrap().iter().any(|info| info.name == "worker"));

    let options = ConnectOptions::new(&broker.addr).with_api_key(&key.key);
    let worker = FilaClient::connect_with_options(options).await.unwrap();
    // Both travel in one frame, which the broker refuses whole; only one of them is at fault.
    let (allowed, denied) = (worker.clone(), worker.clone());
    let allowed = tokio::spawn(async move { allowed.enqueue("allowed", HashMap::new(), "x").await });
    let denied = tokio::spawn(async move { denied.enqueue("denied", HashMap::new(), "x").await });
    soon(allowed).await.unwrap().unwrap();
    let error = soon(denied).await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Forbidden(_)), "{error}");

    let mut stream = worker.consume("allowed").await.unwrap();
    soon(stream.recv()).await.unwrap().unwrap();
    boss.revoke_api_key(&key.id).await.unwrap();
    let error = soon(stream.recv()).await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Unauthorized(_)), "{error}");
    let error = soon(worker.enqueue("allowed", HashMap::new(), "x")).await.unwrap_err();
    assert!(matches!(error, Error::Unauthorized(_)), "{error}");
}
