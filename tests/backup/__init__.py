"""Backups: taken while a broker works, checked, and restored."""
