"""Celery and Kombu on Fila: `broker_url = "fila://host:5555/"`, or `filas://` for TLS.

Owns nothing itself and imports nothing: Kombu loads `registration` while it is being imported, and
that one must not import Kombu's transports. What a Celery project sets is described in
`docs/celery.md`.
"""
