"""gRPC beside FIBP on one port: how fast, and what it costs the other protocol."""
