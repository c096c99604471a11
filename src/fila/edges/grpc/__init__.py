"""gRPC: HTTP/2 connections, calls, and the translation between protobuf and sessions."""
