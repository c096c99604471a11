//! A queue that is changed while it works.

use fila_client::{CreateQueueOptions, Error, FilaClient, QueueUpdate};

use crate::broker::shared;

#[tokio::test]
async fn a_queue_is_changed_while_it_works_and_brought_back() {
    let broker = shared();
    let client = FilaClient::connect(&broker.addr).await.unwrap();
    client.create_queue("changing", CreateQueueOptions::default().max_attempts(7)).await.unwrap();
    let fewer = QueueUpdate::default().set("max_attempts", 3).expected_version(1).note("fewer");
    assert_eq!(client.update_queue("changing", fewer.clone()).await.unwrap(), 2);
    let found = client.get_queue("changing", None).await.unwrap();
    assert_eq!((found.settings["max_attempts"].as_str(), found.note.as_str()), ("3", "fewer"));
    let late = client.update_queue("changing", fewer).await;
    assert!(matches!(late, Err(Error::VersionConflict(_))), "{late:?}");
    let wrong = client.update_queue("changing", QueueUpdate::default().set("colour", "red")).await;
    assert!(matches!(wrong, Err(Error::InvalidConfigValue(_))), "{wrong:?}");
    let back = QueueUpdate::default().from_version(1);
    assert_eq!(client.update_queue("changing", back).await.unwrap(), 3);
    let first = client.get_queue("changing", Some(1)).await.unwrap();
    assert_eq!(first.settings["max_attempts"], "7");
    let versions = client.list_versions("changing").await.unwrap();
    assert_eq!(versions.iter().map(|one| one.version).collect::<Vec<_>>(), [3, 2, 1]);
    assert_eq!(versions[1].changed, ["max_attempts"]);
}
