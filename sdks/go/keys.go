package fila

import (
	"context"
	"time"

	"github.com/faiscadev/fila/sdks/go/internal/wire"
)

// APIKeyConfig is what a new API key may do and for how long; the zero value may nothing, for ever.
type APIKeyConfig struct {
	// ExpiresAt is when the key ends; the zero time means never.
	ExpiresAt time.Time
	// Superadmin keys may do everything.
	Superadmin bool
}

// APIKey is a new key. Key is the secret and is shown only now.
type APIKey struct {
	ID         string
	Key        string
	Superadmin bool
}

// APIKeyInfo is a line of the list of keys.
type APIKeyInfo struct {
	ID        string
	Name      string
	CreatedAt time.Time
	// ExpiresAt is the zero time if the key never ends.
	ExpiresAt  time.Time
	Superadmin bool
}

// Permission allows a kind of use, "produce", "consume" or "admin", of the queues a pattern names: a
// queue's name, "prefix.*" or "*".
type Permission struct {
	Kind    string
	Pattern string
}

// ACL is what a key may do.
type ACL struct {
	KeyID       string
	Superadmin  bool
	Permissions []Permission
}

// CreateAPIKey makes a key. Without permissions ([Client.SetACL]) it may do nothing, unless it is a
// superadmin's.
func (c *Client) CreateAPIKey(ctx context.Context, name string, cfg APIKeyConfig) (*APIKey, error) {
	var reply wire.CreateApiKeyResult
	body := &wire.CreateApiKey{Name: name, IsSuperadmin: cfg.Superadmin}
	if !cfg.ExpiresAt.IsZero() {
		body.ExpiresAtMs = uint64(max(1, cfg.ExpiresAt.UnixMilli()))
	}
	q := query{op: "create API key " + quoted(name), subject: "API key " + quoted(name), body: body, reply: &reply}
	if err := c.ask(ctx, q); err != nil {
		return nil, err
	}
	if err := q.refusal(reply.Code, reply.Message); err != nil {
		return nil, err
	}
	return &APIKey{ID: reply.KeyID, Key: reply.Key, Superadmin: reply.IsSuperadmin}, nil
}

// RevokeAPIKey ends a key, at once also on open connections.
func (c *Client) RevokeAPIKey(ctx context.Context, keyID string) error {
	var reply wire.RevokeApiKeyResult
	q := query{op: "revoke API key " + quoted(keyID), subject: "API key " + quoted(keyID),
		body: &wire.RevokeApiKey{KeyID: keyID}, reply: &reply}
	if err := c.ask(ctx, q); err != nil {
		return err
	}
	return q.refusal(reply.Code, reply.Message)
}

// ListAPIKeys lists the keys without their secrets.
func (c *Client) ListAPIKeys(ctx context.Context) ([]APIKeyInfo, error) {
	var reply wire.ListApiKeysResult
	q := query{op: "list API keys", repeatable: true, body: &wire.ListApiKeys{}, reply: &reply}
	if err := c.ask(ctx, q); err != nil {
		return nil, err
	}
	keys := make([]APIKeyInfo, len(reply.Keys))
	for i, key := range reply.Keys {
		keys[i] = APIKeyInfo{ID: key.KeyID, Name: key.Name, CreatedAt: fromMillis(key.CreatedAtMs), Superadmin: key.IsSuperadmin}
		if key.ExpiresAtMs != 0 {
			keys[i].ExpiresAt = fromMillis(key.ExpiresAtMs)
		}
	}
	return keys, q.refusal(reply.Code, reply.Message)
}

// SetACL replaces a key's permissions.
func (c *Client) SetACL(ctx context.Context, keyID string, permissions []Permission) error {
	var reply wire.SetAclResult
	body := &wire.SetAcl{KeyID: keyID, Permissions: make([]wire.Permission, len(permissions))}
	for i, p := range permissions {
		body.Permissions[i] = wire.Permission(p)
	}
	q := query{op: "set ACL of API key " + quoted(keyID), subject: "API key " + quoted(keyID), body: body, reply: &reply}
	if err := c.ask(ctx, q); err != nil {
		return err
	}
	return q.refusal(reply.Code, reply.Message)
}

// GetACL tells a key's permissions.
func (c *Client) GetACL(ctx context.Context, keyID string) (*ACL, error) {
	var reply wire.GetAclResult
	q := query{op: "ACL of API key " + quoted(keyID), subject: "API key " + quoted(keyID), repeatable: true,
		body: &wire.GetAcl{KeyID: keyID}, reply: &reply}
	if err := c.ask(ctx, q); err != nil {
		return nil, err
	}
	if err := q.refusal(reply.Code, reply.Message); err != nil {
		return nil, err
	}
	acl := &ACL{KeyID: reply.KeyID, Superadmin: reply.IsSuperadmin}
	for _, p := range reply.Permissions {
		acl.Permissions = append(acl.Permissions, Permission(p))
	}
	return acl, nil
}
