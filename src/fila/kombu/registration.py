"""Makes `fila://` and `filas://` known to Kombu, by an entry point.

Kombu has entry points for serializers but none for transports. So this is one: loading it adds the
two schemes to Kombu's table, and what Kombu registers under the name `fila` is its own JSON.
"""

from __future__ import annotations

from typing import Any, Final

from kombu.transport import TRANSPORT_ALIASES
from kombu.utils import json

TRANSPORT_ALIASES.setdefault("fila", "fila.kombu.transport:Transport")
TRANSPORT_ALIASES.setdefault("filas", "fila.kombu.transport:SecureTransport")

# Encoder, decoder, content type, content encoding: what Kombu's entry point has to give.
SERIALIZER: Final[tuple[Any, ...]] = (json.dumps, json.loads, "application/x-fila+json", "utf-8")
