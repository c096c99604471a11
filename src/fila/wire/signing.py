"""The pair of names an API key has for programs that sign requests (SQS): access key id and secret.

Both are derived, so that nothing more is kept of a key: the broker knows the digest of its token,
and whoever has the token makes the same secret. Knows nothing of signatures.
"""

import base64
import hashlib
import hmac
import re
from typing import Final

PREFIX: Final = "FILA"
_PURPOSE: Final = b"fila sqs secret access key, 1"
_ACCESS_KEY: Final = re.compile(PREFIX + r"([0-9A-F]{16})")


def access_key_id(key_id: str) -> str:
    """What stands for the API key in a signed request."""
    return PREFIX + key_id.upper()


def key_id_of(access_key: str) -> str | None:
    found = _ACCESS_KEY.fullmatch(access_key)
    return found[1].lower() if found else None


def digest_of(token: str) -> str:
    """What the broker keeps of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def secret_access_key(digest: str) -> str:
    """The secret that signs, of a token's digest: forty characters, as elsewhere."""
    raw = hmac.digest(digest.encode(), _PURPOSE, "sha256")
    return base64.urlsafe_b64encode(raw).decode()[:40]
