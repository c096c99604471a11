"""Message ids: 16 bytes in the broker, 36 characters on the wire.

Owns the text form of a UUID, in both directions. Never makes ids: that needs a clock.
"""

from binascii import Error as BadHex
from binascii import hexlify, unhexlify
from typing import Final

ID_BYTES: Final = 16
ID_TEXT_BYTES: Final = 36


def id_text(id16: bytes) -> bytes:
    """`0190a0b1-c2d3-7e4f-8a5b-6c7d8e9f0a1b`, in lower case."""
    # Groups of four digits, then three dashes taken out again: the fastest of five variants.
    text = hexlify(id16, "-", 2)
    return text[:4] + text[5:29] + text[30:34] + text[35:]


def parse_id(text: bytes) -> bytes | None:
    """The 16 bytes of an id in upper or lower case, or None when the text is no UUID."""
    if len(text) != ID_TEXT_BYTES or text[8:24:5] != b"----":
        return None
    try:
        id16 = unhexlify(text.replace(b"-", b""))
    except BadHex:
        return None
    return id16 if len(id16) == ID_BYTES else None
