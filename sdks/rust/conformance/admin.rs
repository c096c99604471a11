//! Administration.

use std::time::{Duration, UNIX_EPOCH};

use fila_client::{CreateApiKeyOptions, CreateQueueOptions, ExplainQuery, FilaClient, Permission};
use serde_json::{json, Value};

use crate::{millis, text, Answer, Failure};

pub async fn administer(client: &FilaClient, r: &Value) -> Answer {
    let queue = text(r, "queue");
    let key = text(r, "fairness_key");
    match text(r, "op") {
        "create_queue" => {
            let mut options = CreateQueueOptions::default();
            options.on_enqueue = r["on_enqueue"].as_str().map(str::to_owned);
            options.on_failure = r["on_failure"].as_str().map(str::to_owned);
            options.visibility_timeout = millis(r, "visibility_timeout_ms");
            Ok(json!({"queue_id": client.create_queue(queue, options).await?}))
        }
        "delete_queue" => done(client.delete_queue(queue).await?),
        "list_queues" => {
            let list = client.list_queues().await?;
            let queues: Vec<_> = list
                .queues
                .iter()
                .map(|q| json!({"name": q.name, "depth": q.depth, "in_flight": q.in_flight, "active_consumers": q.active_consumers}))
                .collect();
            Ok(json!({"queues": queues}))
        }
        "get_stats" => get_stats(client, queue).await,
        "set_config" => done(client.set_config(text(r, "key"), text(r, "value")).await?),
        "get_config" => Ok(json!({"value": client.get_config(text(r, "key")).await?})),
        "list_config" => Ok(json!({"entries": client.list_config(text(r, "prefix")).await?})),
        "redrive" => {
            let limit = r["limit"].as_u64().filter(|limit| *limit > 0);
            Ok(json!({"redriven": client.redrive(queue, limit).await?}))
        }
        "explain" => {
            let mut query = ExplainQuery::queue(queue).message(text(r, "message_id"));
            if let Some(key) = r["fairness_key"].as_str() {
                query = query.fairness_key(key);
            }
            let document: Value =
                serde_json::from_slice(&client.explain(query).await?).map_err(|e| e.to_string())?;
            Ok(json!({"document": document}))
        }
        "pause_queue" => done(client.pause_queue(queue, text(r, "reason")).await?),
        "resume_queue" => done(client.resume_queue(queue).await?),
        "pause_key" => done(client.pause_key(queue, key, text(r, "reason")).await?),
        "resume_key" => done(client.resume_key(queue, key).await?),
        "purge" => {
            let purged = match r["fairness_key"].as_str() {
                Some(key) => client.purge_key(queue, key).await?,
                None => client.purge(queue).await?,
            };
            Ok(json!({"purged": purged}))
        }
        _ => administer_keys(client, r).await,
    }
}

async fn administer_keys(client: &FilaClient, r: &Value) -> Answer {
    match text(r, "op") {
        "create_api_key" => {
            let mut options = CreateApiKeyOptions::default();
            options.superadmin = r["is_superadmin"] == true;
            options.expires_at = r["expires_at_ms"]
                .as_u64()
                .filter(|ms| *ms > 0)
                .map(|ms| UNIX_EPOCH + Duration::from_millis(ms));
            let key = client.create_api_key(text(r, "name"), options).await?;
            Ok(json!({"key_id": key.id, "key": key.key, "is_superadmin": key.superadmin}))
        }
        "revoke_api_key" => done(client.revoke_api_key(text(r, "key_id")).await?),
        "list_api_keys" => {
            let keys = client.list_api_keys().await?;
            let keys: Vec<_> = keys
                .iter()
                .map(|key| json!({"key_id": key.id, "name": key.name, "is_superadmin": key.superadmin}))
                .collect();
            Ok(json!({"keys": keys}))
        }
        "set_acl" => {
            let permissions = r["permissions"].as_array().into_iter().flatten().map(|pair| {
                Permission::new(pair[0].as_str().unwrap_or_default(), pair[1].as_str().unwrap_or_default())
            });
            done(client.set_acl(text(r, "key_id"), permissions).await?)
        }
        "get_acl" => {
            let acl = client.get_acl(text(r, "key_id")).await?;
            let permissions: Vec<_> = acl.permissions.iter().map(|p| json!([p.kind, p.pattern])).collect();
            Ok(json!({"key_id": acl.key_id, "is_superadmin": acl.superadmin, "permissions": permissions}))
        }
        other => Err(Failure::NotImplemented(other.to_owned())),
    }
}

async fn get_stats(client: &FilaClient, queue: &str) -> Answer {
    let s = client.get_stats(queue).await?;
    let fair: Vec<_> = s
        .fairness_keys
        .iter()
        .map(|k| json!({"key": k.key, "pending": k.pending, "deficit": k.deficit, "weight": k.weight}))
        .collect();
    let throttled: Vec<_> = s
        .throttle_keys
        .iter()
        .map(|k| json!({"key": k.key, "tokens": k.tokens, "rate_per_second": k.rate_per_second, "burst": k.burst}))
        .collect();
    Ok(json!({
        "depth": s.depth, "in_flight": s.in_flight, "active_consumers": s.active_consumers,
        "active_fairness_keys": s.active_fairness_keys, "quantum": s.quantum,
        "fairness_keys": fair, "throttle_keys": throttled,
    }))
}

fn done((): ()) -> Answer {
    Ok(json!({}))
}
