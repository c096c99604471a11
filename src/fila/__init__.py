"""Fila: a message broker with fair scheduling and per-key throttling."""

__version__ = "0.1.0"
