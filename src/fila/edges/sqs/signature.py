"""Signature Version 4: who sent a request, found by the signature on it.

Owns the canonical form of a request, the clock's tolerance, and the signing keys that were derived
lately. What a caller may do is asked of the guard, as everywhere.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from calendar import timegm
from time import gmtime, strftime, strptime
from typing import Final, NamedTuple
from urllib.parse import quote

from fila.core.rejection import Rejection
from fila.edges.http.message import Request
from fila.edges.sqs.faults import SqsError
from fila.security.guard import Guard, Identity
from fila.wire import signing

ALGORITHM: Final = "AWS4-HMAC-SHA256"
SKEW_MAX_S: Final = 15 * 60
SIGNED_HEADERS_MAX: Final = 64
SIGNING_KEYS_MAX: Final = 1_024  # derived and remembered; beyond, they are forgotten
_TIME: Final = "%Y%m%dT%H%M%SZ"
_FIELD: Final = re.compile(r"(Credential|SignedHeaders|Signature)=([^,\s]+)")


class _Claim(NamedTuple):
    """What an Authorization header says."""

    access_key: str
    date: str
    region: str
    headers: tuple[str, ...]
    signature: str


class Signatures:
    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._keys: dict[tuple[str, str, str], bytes] = {}

    def caller(self, request: Request, now_ms: int) -> Identity:
        """Who signed the request. Raises SqsError: the codes SDKs know, and never more of a
        secret's whereabouts than that it is wrong."""
        claim = _claimed(request.headers.get("authorization", ""))
        key_id = signing.key_id_of(claim.access_key)
        key = self._guard.keyring.get(key_id) if key_id is not None else None
        if key is None:
            raise SqsError("InvalidClientTokenId", "the access key id is not known")
        time = _time(request, claim, now_ms)
        secret = signing.secret_access_key(key.digest)
        scope = f"{claim.date}/{claim.region}/sqs/aws4_request"
        hashed = hashlib.sha256(_canonical(request, claim.headers).encode()).hexdigest()
        signed = f"{ALGORITHM}\n{time}\n{scope}\n{hashed}"
        wanted = hmac.new(self._signing_key(secret, claim), signed.encode(), hashlib.sha256)
        if not hmac.compare_digest(wanted.hexdigest().encode(), claim.signature.encode()):
            text = "the signature does not match: check the secret access key"
            raise SqsError("SignatureDoesNotMatch", text)
        identity = self._guard.admit_key(key.id, now_ms)
        if isinstance(identity, Rejection):
            raise SqsError("InvalidClientTokenId", identity.message)
        return identity

    def _signing_key(self, secret: str, claim: _Claim) -> bytes:
        name = (secret, claim.date, claim.region)
        found = self._keys.get(name)
        if found is None:
            if len(self._keys) >= SIGNING_KEYS_MAX:
                self._keys.clear()
            found = b"AWS4" + secret.encode()
            for part in (claim.date, claim.region, "sqs", "aws4_request"):
                found = hmac.digest(found, part.encode(), "sha256")
            self._keys[name] = found
        return found


def region_of(request: Request) -> str:
    """The region the caller believes in; it is told the same in ARNs."""
    found = request.headers.get("authorization", "").partition("Credential=")[2].split("/", 3)
    region = found[2] if len(found) == 4 else ""
    return region if re.fullmatch(r"[a-z0-9-]{1,32}", region) else "us-east-1"


def _claimed(authorization: str) -> _Claim:
    if not authorization:
        text = "sign the request with an access key: `fila auth create NAME --sqs` makes one"
        raise SqsError("MissingAuthenticationToken", text)
    scheme, _, rest = authorization.partition(" ")
    fields = dict(_FIELD.findall(rest))
    scope = fields.get("Credential", "").split("/")
    headers = tuple(fields.get("SignedHeaders", "").split(";"))
    if scheme != ALGORITHM or len(fields) != 3 or len(scope) != 5:
        raise SqsError("IncompleteSignature", f"the Authorization header is no {ALGORITHM}")
    if scope[3:] != ["sqs", "aws4_request"] or len(headers) > SIGNED_HEADERS_MAX:
        raise SqsError("IncompleteSignature", "the credential is not for sqs/aws4_request")
    if list(headers) != sorted(set(headers)):
        raise SqsError("IncompleteSignature", "SignedHeaders are not in order")
    return _Claim(scope[0], scope[1], scope[2], headers, fields["Signature"])


def _time(request: Request, claim: _Claim, now_ms: int) -> str:
    """When it was signed, if that is now, give or take."""
    text = request.headers.get("x-amz-date", "")
    try:
        signed_s = timegm(strptime(text, _TIME))
    except ValueError:
        raise SqsError("IncompleteSignature", "the header X-Amz-Date is no time") from None
    if text[:8] != claim.date:
        raise SqsError("SignatureDoesNotMatch", "the credential's date is not X-Amz-Date's")
    needed = [name for name in request.headers if name.startswith("x-amz-")]
    for name in ("host", *needed):
        if name not in claim.headers:
            raise SqsError("SignatureDoesNotMatch", f"the header {name[:100]} is not signed")
    if abs(now_ms // 1000 - signed_s) > SKEW_MAX_S:
        now = strftime(_TIME, gmtime(now_ms // 1000))
        raise SqsError("RequestExpired", f"signed at {text}, and it is {now}: set the clock")
    return text


def _canonical(request: Request, names: tuple[str, ...]) -> str:
    """The request as its sender has to have seen it. The body's hash is taken of the body itself,
    whatever a header says of it."""
    path, _, query = request.target.partition("?")
    lines = [request.method, quote(path or "/", safe="/-_.~"), _sorted(query)]
    for name in names:
        value = request.headers.get(name)
        if value is None:
            raise SqsError("SignatureDoesNotMatch", f"the signed header {name[:100]} is missing")
        lines.append(f"{name}:{' '.join(value.split())}")
    lines += ["", ";".join(names), hashlib.sha256(request.body).hexdigest()]
    return "\n".join(lines)


def _sorted(query: str) -> str:
    pairs = [pair if "=" in pair else pair + "=" for pair in query.split("&") if pair]
    return "&".join(sorted(pairs))
