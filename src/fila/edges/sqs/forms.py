"""The two forms of SQS's requests and answers: AWS JSON 1.0, and query parameters with XML.

Owns reading either into an action with parameters as the JSON form has them, and writing a result
or an error in the form of its request. Owns the bounds on how deep and how many.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

from fila.edges.http.message import NO_STORE, Fields, HttpError, Request, Response
from fila.edges.sqs.faults import SqsError

JSON_KIND: Final = "application/x-amz-json-1.0"
FORM_KIND: Final = "application/x-www-form-urlencoded"
XML_KIND: Final = "text/xml"
TARGET: Final = "AmazonSQS."
NAMESPACE: Final = "http://queue.amazonaws.com/doc/2012-11-05/"
FIELDS_MAX: Final = 1_024  # of a query form: ten entries with ten attributes each have about 500
PARAMETER_BYTES_MAX: Final = 256  # of a parameter's name

Parameters = dict[str, Any]

# Lists and maps of the query form, and what the JSON form calls them.
_LISTS: Final = {
    "AttributeName": "AttributeNames",
    "MessageAttributeName": "MessageAttributeNames",
    "MessageSystemAttributeName": "MessageSystemAttributeNames",
    "SendMessageBatchRequestEntry": "Entries",
    "DeleteMessageBatchRequestEntry": "Entries",
    "ChangeMessageVisibilityBatchRequestEntry": "Entries",
    "TagKey": "TagKeys",
}
_MAPS: Final = {
    "Attribute": ("Attributes", "Name"),
    "MessageAttribute": ("MessageAttributes", "Name"),
    "MessageSystemAttribute": ("MessageSystemAttributes", "Name"),
    "Tag": ("Tags", "Key"),
}
# How the items of a result's lists and maps are called in XML.
_ITEMS: Final = {
    "QueueUrls": "QueueUrl",
    "queueUrls": "QueueUrl",
    "Messages": "Message",
    "Failed": "BatchResultErrorEntry",
    "Results": "ListMessageMoveTasksResultEntry",
    "Attributes": "Attribute",
    "MessageAttributes": "MessageAttribute",
}
_NOT_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Call(NamedTuple):
    """One request, whichever form it came in."""

    action: str
    parameters: Parameters
    is_json: bool


def read(request: Request) -> Call:
    """What a request asks for. Raises SqsError; HttpError for what is no request of SQS at all."""
    if request.method != "POST":
        raise HttpError(405, "MethodNotAllowed", "use POST", (("Allow", "POST"),))
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    target = request.headers.get("x-amz-target")
    if target is not None:
        return Call(_action(target.removeprefix(TARGET)), _read_json(request.body), True)
    if kind == FORM_KIND:
        return _read_query(request)
    text = f"send {JSON_KIND} with X-Amz-Target, or {FORM_KIND} with an Action"
    raise HttpError(400, "InvalidAction", text)


def is_json(request: Request) -> bool:
    return "x-amz-target" in request.headers


def answered(call: Call, result: Parameters, request_id: str) -> Response:
    """A result in the form of its request."""
    if call.is_json:
        body = json.dumps(result, separators=(",", ":"), ensure_ascii=False).encode()
        return Response(200, body, JSON_KIND, (("x-amzn-RequestId", request_id),))
    name = call.action
    inner = "".join(_xml(call.action, result))
    text = (
        f'<?xml version="1.0"?><{name}Response xmlns="{NAMESPACE}"><{name}Result>{inner}'
        f"</{name}Result><ResponseMetadata><RequestId>{request_id}</RequestId></ResponseMetadata>"
        f"</{name}Response>"
    )
    return Response(200, text.encode(), XML_KIND, (("x-amzn-RequestId", request_id),))


def refused(as_json: bool, error: SqsError, request_id: str, date: str) -> Response:
    """An error in the form of its request. The date lets SDKs see that their clock is wrong."""
    headers: Fields = (NO_STORE, ("x-amzn-RequestId", request_id), ("Date", date))
    if error.retry_after_s:
        headers = (*headers, ("Retry-After", str(error.retry_after_s)))
    side = "Sender" if error.sender_fault else "Receiver"
    if as_json:
        told = {"__type": f"com.amazonaws.sqs#{error.code}", "message": str(error)}
        headers = (*headers, ("x-amzn-query-error", f"{error.query_code};{side}"))
        return Response(error.status, json.dumps(told).encode(), JSON_KIND, headers)
    text = (
        f'<?xml version="1.0"?><ErrorResponse xmlns="{NAMESPACE}"><Error><Type>{side}</Type>'
        f"<Code>{error.query_code}</Code><Message>{_shown(str(error))}</Message><Detail/></Error>"
        f"<RequestId>{request_id}</RequestId></ErrorResponse>"
    )
    return Response(error.status, text.encode(errors="replace"), XML_KIND, headers)


def _action(name: str) -> str:
    if not name.isascii() or not name.isalnum() or len(name) > PARAMETER_BYTES_MAX:
        raise SqsError("InvalidAction", "the action is no name")
    return name


def _read_json(body: bytes) -> Parameters:
    try:
        found = json.loads(body or b"{}")
    except (ValueError, RecursionError) as error:
        raise SqsError("SerializationException", "the body is no JSON") from error
    if not isinstance(found, dict):
        raise SqsError("SerializationException", "the body is no JSON object")
    return found


# --- the query form


def _read_query(request: Request) -> Call:
    try:
        pairs = parse_qsl(
            request.body.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=FIELDS_MAX,
        )
    except UnicodeDecodeError as error:
        raise SqsError("MalformedQueryString", "a value is not valid UTF-8") from error
    except ValueError as error:
        raise SqsError("MalformedQueryString", f"more than {FIELDS_MAX} parameters") from error
    fields: dict[str, str] = {}
    for name, value in pairs:
        if len(name) > PARAMETER_BYTES_MAX:
            raise SqsError("MalformedQueryString", "the name of a parameter is too long")
        fields[name] = value
    action = _action(fields.pop("Action", ""))
    fields.pop("Version", None)
    parameters = _unfolded(fields)
    if "QueueUrl" not in parameters and request.path.strip("/"):
        parameters["QueueUrl"] = request.path
    return Call(action, parameters, False)


def _unfolded(fields: dict[str, str]) -> Parameters:
    """`Name.1.Id=…` and the like as lists and maps."""
    found: Parameters = {}
    groups: dict[str, dict[int, dict[str, str]]] = {}
    for name, value in fields.items():
        stem, dot, rest = name.partition(".")
        if not dot:
            found[name] = value
            continue
        number, _, inner = rest.partition(".")
        if not number.isascii() or not number.isdigit() or len(number) > 4:
            if stem == "Value":  # of a message attribute
                inside = found.setdefault(stem, {})
                if isinstance(inside, dict):
                    inside[rest] = value
                    continue
            raise SqsError("MalformedQueryString", f"the parameter {name} has no number")
        groups.setdefault(stem, {}).setdefault(int(number), {})[inner] = value
    for stem, numbered in groups.items():
        items = [numbered[number] for number in sorted(numbered)]
        if stem in _LISTS:
            called = _LISTS[stem]
            found[called] = [one[""] if "" in one else _unfolded(one) for one in items]
        elif stem in _MAPS:
            called, key = _MAPS[stem]
            maps = [_unfolded(one) for one in items]
            found[called] = {str(one.get(key, "")): one.get("Value", "") for one in maps}
        else:
            raise SqsError("MalformedQueryString", f"the parameter {stem} is not known")
    return found


def _xml(action: str, fields: Parameters) -> Iterable[str]:
    for name, value in fields.items():
        if isinstance(value, list):
            item = f"{action}ResultEntry" if name == "Successful" else _ITEMS[name]
            for one in value:
                inner = "".join(_xml(action, one)) if isinstance(one, dict) else _shown(str(one))
                yield f"<{item}>{inner}</{item}>"
        elif isinstance(value, dict):
            item = _ITEMS[name]
            for key, one in value.items():
                inner = "".join(_xml(action, one)) if isinstance(one, dict) else _shown(str(one))
                yield f"<{item}><Name>{_shown(key)}</Name><Value>{inner}</Value></{item}>"
        else:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            yield f"<{name}>{_shown(text)}</{name}>"


def _shown(text: str) -> str:
    """XML has no way to say a control character: what messages hold was checked before."""
    return escape(_NOT_XML.sub("\ufffd", text), {"\r": "&#13;", '"': "&quot;"})
