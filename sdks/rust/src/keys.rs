//! API keys and what they may do.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::admin::about;
use crate::client::FilaClient;
use crate::message::from_millis;
use crate::request::check;
use crate::wire;
use crate::{Error, Result};

/// What a new API key may do and for how long; the default may nothing, for ever.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct CreateApiKeyOptions {
    /// When the key ends; `None` means never.
    pub expires_at: Option<SystemTime>,
    /// Superadmin keys may do everything.
    pub superadmin: bool,
}

impl CreateApiKeyOptions {
    /// Sets when the key ends.
    pub fn expires_at(mut self, time: SystemTime) -> Self {
        self.expires_at = Some(time);
        self
    }

    /// Lets the key do everything.
    pub fn superadmin(mut self) -> Self {
        self.superadmin = true;
        self
    }
}

/// A new key.
#[derive(Clone)]
#[non_exhaustive]
pub struct ApiKey {
    /// Names the key without being secret.
    pub id: String,
    /// The secret; it is shown only now.
    pub key: String,
    /// Whether it may do everything.
    pub superadmin: bool,
}

impl std::fmt::Debug for ApiKey {
    /// Without the secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiKey")
            .field("id", &self.id)
            .field("superadmin", &self.superadmin)
            .finish_non_exhaustive()
    }
}

/// A line of the list of keys.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ApiKeyInfo {
    /// Names the key.
    pub id: String,
    /// What its maker called it.
    pub name: String,
    /// When it was made.
    pub created_at: SystemTime,
    /// When it ends; `None` means never.
    pub expires_at: Option<SystemTime>,
    /// Whether it may do everything.
    pub superadmin: bool,
}

/// Allows a kind of use of the queues a pattern names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permission {
    /// `produce`, `consume` or `admin`.
    pub kind: String,
    /// A queue's name, `prefix.*` or `*`.
    pub pattern: String,
}

impl Permission {
    /// A permission of this kind for this pattern.
    pub fn new(kind: impl Into<String>, pattern: impl Into<String>) -> Permission {
        Permission { kind: kind.into(), pattern: pattern.into() }
    }
}

/// What a key may do.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Acl {
    /// The key.
    pub key_id: String,
    /// Whether it may do everything.
    pub superadmin: bool,
    /// What it may do otherwise.
    pub permissions: Vec<Permission>,
}

impl FilaClient {
    /// Makes a key. Without permissions ([`set_acl`](FilaClient::set_acl)) it may do nothing, unless it is a
    /// superadmin's.
    pub async fn create_api_key(&self, name: &str, options: CreateApiKeyOptions) -> Result<ApiKey> {
        let q = about(format!("create API key {name:?}"), "", false);
        let expires_at_ms = match options.expires_at {
            None => 0,
            Some(time) => {
                let since = time.duration_since(UNIX_EPOCH);
                let since =
                    since.map_err(|_| Error::invalid(&q.operation, "the key would end before 1970"))?;
                u64::try_from(since.as_millis()).unwrap_or(u64::MAX).max(1)
            }
        };
        let body =
            wire::CreateApiKey { name: name.to_owned(), expires_at_ms, is_superadmin: options.superadmin };
        let reply: wire::CreateApiKeyResult = self.ask(&q, &body).await?;
        check(&q.operation, &format!("API key {name:?}"), reply.code, reply.message.as_deref())?;
        Ok(ApiKey { id: reply.key_id, key: reply.key, superadmin: reply.is_superadmin })
    }

    /// Ends a key, at once also on open connections.
    pub async fn revoke_api_key(&self, key_id: &str) -> Result<()> {
        let q = about(format!("revoke API key {key_id:?}"), "", false);
        let reply: wire::RevokeApiKeyResult =
            self.ask(&q, &wire::RevokeApiKey { key_id: key_id.to_owned() }).await?;
        check(&q.operation, &format!("API key {key_id:?}"), reply.code, reply.message.as_deref())
    }

    /// Lists the keys without their secrets.
    pub async fn list_api_keys(&self) -> Result<Vec<ApiKeyInfo>> {
        let q = about("list API keys".to_owned(), "", true);
        let reply: wire::ListApiKeysResult = self.ask(&q, &wire::ListApiKeys {}).await?;
        check(&q.operation, "", reply.code, reply.message.as_deref())?;
        let info = |key: wire::ApiKeySummary| ApiKeyInfo {
            id: key.key_id,
            name: key.name,
            created_at: from_millis(key.created_at_ms),
            expires_at: (key.expires_at_ms != 0).then(|| from_millis(key.expires_at_ms)),
            superadmin: key.is_superadmin,
        };
        Ok(reply.keys.into_iter().map(info).collect())
    }

    /// Replaces a key's permissions.
    pub async fn set_acl(
        &self,
        key_id: &str,
        permissions: impl IntoIterator<Item = Permission>,
    ) -> Result<()> {
        let q = about(format!("set ACL of API key {key_id:?}"), "", false);
        let permissions =
            permissions.into_iter().map(|p| wire::Permission { kind: p.kind, pattern: p.pattern }).collect();
        let reply: wire::SetAclResult =
            self.ask(&q, &wire::SetAcl { key_id: key_id.to_owned(), permissions }).await?;
        check(&q.operation, &format!("API key {key_id:?}"), reply.code, reply.message.as_deref())
    }

    /// Tells a key's permissions.
    pub async fn get_acl(&self, key_id: &str) -> Result<Acl> {
        let q = about(format!("ACL of API key {key_id:?}"), "", true);
        let reply: wire::GetAclResult = self.ask(&q, &wire::GetAcl { key_id: key_id.to_owned() }).await?;
        check(&q.operation, &format!("API key {key_id:?}"), reply.code, reply.message.as_deref())?;
        let permissions =
            reply.permissions.into_iter().map(|p| Permission { kind: p.kind, pattern: p.pattern }).collect();
        Ok(Acl { key_id: reply.key_id, superadmin: reply.is_superadmin, permissions })
    }
}
