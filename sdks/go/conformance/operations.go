package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"runtime/debug"
	"strconv"
	"time"

	fila "github.com/faiscadev/fila/sdks/go"
)

func (a *adapter) do(ctx context.Context, r *request) (object, error) {
	switch r.Op {
	case "hello":
		return object{"protocol": 1, "language": "go", "version": fila.Version}, nil
	case "stats":
		return stats()
	case "abort":
		a.mu.Lock()
		defer a.mu.Unlock()
		if cancel := a.aborts[r.Request]; cancel != nil {
			cancel()
		}
		return object{}, nil
	case "encode":
		return encode(r)
	case "decode":
		return decode(r)
	case "decode_body":
		return decodeBody(r)
	case "decode_stream":
		return decodeStream(r)
	case "state":
		return state(r)
	case "connect":
		return a.connect(ctx, r)
	case "events":
		a.mu.Lock()
		defer a.mu.Unlock()
		return object{"events": append([]string{}, a.events[r.Client]...)}, nil
	case "logs":
		a.mu.Lock()
		defer a.mu.Unlock()
		return object{"lines": a.logs[r.Client].told()}, nil
	case "next":
		return a.next(ctx, r)
	case "cancel":
		c, err := a.consumer(r.Consumer)
		if err == nil {
			err = c.Close()
		}
		return object{}, err
	case "ack", "nack", "release", "extend":
		return a.settle(ctx, r)
	}
	c, err := a.client(r.Client)
	if err != nil {
		return nil, err
	}
	switch r.Op {
	case "close":
		return object{}, c.Close()
	case "drain":
		ctx, cancel := r.within(ctx)
		defer cancel()
		return object{}, c.Drain(ctx)
	case "enqueue":
		return a.enqueue(ctx, c, r)
	case "enqueue_many":
		return a.enqueueMany(ctx, c, r)
	case "consume":
		return a.consume(ctx, c, r)
	}
	ctx, cancel := r.within(ctx)
	defer cancel()
	return administer(ctx, c, r)
}

func stats() (object, error) {
	debug.FreeOSMemory()
	content, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return nil, err
	}
	pages, err := strconv.Atoi(string(bytes.Fields(content)[1]))
	return object{"rss_bytes": pages * os.Getpagesize()}, err
}

func administer(ctx context.Context, c *fila.Client, r *request) (object, error) {
	key := ""
	if r.FairnessKey != nil {
		key = *r.FairnessKey
	}
	switch r.Op {
	case "create_queue":
		id, err := c.CreateQueue(ctx, r.Queue, fila.QueueConfig{OnEnqueue: r.OnEnqueue, OnFailure: r.OnFailure,
			VisibilityTimeout: time.Duration(r.VisibilityMs) * time.Millisecond})
		return object{"queue_id": id}, err
	case "delete_queue":
		return object{}, c.DeleteQueue(ctx, r.Queue)
	case "list_queues":
		return listQueues(ctx, c)
	case "get_stats":
		return getStats(ctx, c, r.Queue)
	case "set_config":
		return object{}, c.SetConfig(ctx, r.Key, r.Value)
	case "get_config":
		value, err := c.GetConfig(ctx, r.Key)
		return object{"value": value}, err
	case "list_config":
		entries, err := c.ListConfig(ctx, r.Prefix)
		return object{"entries": entries}, err
	case "redrive":
		n, err := c.Redrive(ctx, r.Queue, r.Limit)
		return object{"redriven": n}, err
	case "explain":
		document, err := c.Explain(ctx, fila.ExplainQuery{Queue: r.Queue, FairnessKey: r.FairnessKey, MessageID: r.MessageID})
		return object{"document": json.RawMessage(document)}, err
	case "pause_queue":
		return object{}, c.PauseQueue(ctx, r.Queue, r.Reason)
	case "resume_queue":
		return object{}, c.ResumeQueue(ctx, r.Queue)
	case "pause_key":
		return object{}, c.PauseKey(ctx, r.Queue, key, r.Reason)
	case "resume_key":
		return object{}, c.ResumeKey(ctx, r.Queue, key)
	case "purge":
		if r.FairnessKey != nil {
			n, err := c.PurgeKey(ctx, r.Queue, key)
			return object{"purged": n}, err
		}
		n, err := c.Purge(ctx, r.Queue)
		return object{"purged": n}, err
	}
	return administerKeys(ctx, c, r)
}

func administerKeys(ctx context.Context, c *fila.Client, r *request) (object, error) {
	switch r.Op {
	case "create_api_key":
		cfg := fila.APIKeyConfig{Superadmin: r.Superadmin}
		if r.ExpiresAtMs != 0 {
			cfg.ExpiresAt = time.UnixMilli(r.ExpiresAtMs)
		}
		key, err := c.CreateAPIKey(ctx, r.Name, cfg)
		if err != nil {
			return nil, err
		}
		return object{"key_id": key.ID, "key": key.Key, "is_superadmin": key.Superadmin}, nil
	case "revoke_api_key":
		return object{}, c.RevokeAPIKey(ctx, r.KeyID)
	case "list_api_keys":
		keys, err := c.ListAPIKeys(ctx)
		list := make([]object, len(keys))
		for i, key := range keys {
			list[i] = object{"key_id": key.ID, "name": key.Name, "is_superadmin": key.Superadmin}
		}
		return object{"keys": list}, err
	case "set_acl":
		var permissions []fila.Permission
		for _, p := range r.Permissions {
			permissions = append(permissions, fila.Permission{Kind: p[0], Pattern: p[1]})
		}
		return object{}, c.SetACL(ctx, r.KeyID, permissions)
	case "get_acl":
		acl, err := c.GetACL(ctx, r.KeyID)
		if err != nil {
			return nil, err
		}
		permissions := [][2]string{}
		for _, p := range acl.Permissions {
			permissions = append(permissions, [2]string{p.Kind, p.Pattern})
		}
		return object{"key_id": acl.KeyID, "is_superadmin": acl.Superadmin, "permissions": permissions}, nil
	}
	return nil, notImplemented(r.Op)
}

func listQueues(ctx context.Context, c *fila.Client) (object, error) {
	found, err := c.ListQueues(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]object, len(found.Queues))
	for i, q := range found.Queues {
		list[i] = object{"name": q.Name, "depth": q.Depth, "in_flight": q.InFlight, "active_consumers": q.ActiveConsumers}
	}
	return object{"queues": list, "cluster_node_count": found.ClusterNodeCount}, nil
}

func getStats(ctx context.Context, c *fila.Client, queue string) (object, error) {
	s, err := c.GetStats(ctx, queue)
	if err != nil {
		return nil, err
	}
	fair, throttled := []object{}, []object{}
	for _, key := range s.FairnessKeys {
		fair = append(fair, object{"key": key.Key, "pending": key.Pending, "deficit": key.Deficit, "weight": key.Weight})
	}
	for _, key := range s.ThrottleKeys {
		throttled = append(throttled, object{"key": key.Key, "tokens": key.Tokens, "rate_per_second": key.RatePerSecond, "burst": key.Burst})
	}
	return object{"depth": s.Depth, "in_flight": s.InFlight, "active_consumers": s.ActiveConsumers,
		"active_fairness_keys": s.ActiveFairnessKeys, "quantum": s.Quantum,
		"fairness_keys": fair, "throttle_keys": throttled}, nil
}
