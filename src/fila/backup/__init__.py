"""Backups: a running store's files in a directory or an object store, and back again."""
