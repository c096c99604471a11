"""`fila context list|show|use|set|delete`: brokers by name.

Owns the contexts file, `$XDG_CONFIG_HOME/fila/contexts.json` or `~/.config/fila/contexts.json`:

    {"current": "prod", "contexts": {"prod": {"addr": "broker:5555", "tls": true, "api_key": "…"}}}

It may hold API keys, so only its owner can read it. Never talks to a broker.
"""

from __future__ import annotations

import argparse
import os
from typing import Any, Final

from fila.cli.failure import Failure, unreadable, usage
from fila.cli.options import DEFAULT_ADDR, Subparsers, command, verbs
from fila.cli.output import say, say_json, shown, table

# Always there: the broker on this machine, unless `context set default` says otherwise.
DEFAULT_CONTEXT: Final = "default"
_SETTINGS: Final = ("addr", "tls", "tls_ca_cert", "tls_cert", "tls_key", "api_key")


def add_parser(subparsers: Subparsers) -> None:
    parser = command(
        subparsers,
        "context",
        "give brokers names and choose one",
        about="Give brokers names and choose the one that commands talk to. --addr and FILA_ADDR\n"
        "leave the current context aside, its key and certificates included.",
        examples="  fila context set prod --addr broker.example:5555 --tls --api-key KEY\n"
        "  fila context use prod\n"
        "  fila context use default        # back to localhost:5555",
    )
    inner = verbs(parser)
    command(
        inner,
        "list",
        "list contexts; * marks the current one",
        about="List contexts; * marks the current one. API keys are not shown.",
        examples="  fila context list",
    )
    show = command(
        inner,
        "show",
        "show one context, the current one unless another is named",
        about="Show one context, the current one unless another is named. Its key is not shown.",
        examples="  fila context show\n  fila context show prod --json",
    )
    show.add_argument("name", metavar="NAME", nargs="?", help="a context of the list")
    use = command(
        inner,
        "use",
        "make a context the current one",
        examples="  fila context use prod\n  fila context use default",
    )
    use.add_argument("name", metavar="NAME", help="a context of the list")
    set_ = command(
        inner,
        "set",
        "write down a context",
        about="Write down a context: the connection options given here, and no others. A context\n"
        "of the same name is replaced.",
        examples="  fila context set prod --addr broker.example:5555 --tls --api-key KEY\n"
        "  fila context set staging --addr staging:5555",
    )
    set_.add_argument("name", metavar="NAME", help="what to call it")
    delete = command(
        inner,
        "delete",
        "forget a context",
        about="Forget a context. If it is the current one, `default` becomes current.",
        examples="  fila context delete staging",
    )
    delete.add_argument("name", metavar="NAME", help="a context of the list")


def run(args: argparse.Namespace) -> int:
    if args.verb == "list":
        return _list(args)
    if args.verb == "show":
        return _show(args)
    if args.verb == "use":
        return _use(args)
    if args.verb == "delete":
        return _delete(args)
    return _set(args)


def current_settings() -> dict[str, Any]:
    """What the current context says; nothing without a contexts file."""
    book = _read()
    return dict(book["contexts"].get(book["current"], {}))


def names() -> list[str]:
    return sorted({DEFAULT_CONTEXT, *_read()["contexts"]})


def path() -> str:
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(base, "fila", "contexts.json")


def _list(args: argparse.Namespace) -> int:
    book = _read()
    contexts = {DEFAULT_CONTEXT: {}, **book["contexts"]}
    if args.json:
        documents = [_document(name, found) for name, found in sorted(contexts.items())]
        say_json({"current": book["current"], "contexts": documents})
        return 0
    rows = [
        (
            "*" if name == book["current"] else "",
            name,
            found.get("addr", DEFAULT_ADDR),
            "yes" if _is_tls(found) else "no",
            "set" if found.get("api_key") else "none",
        )
        for name, found in sorted(contexts.items())
    ]
    say(table(("CURRENT", "NAME", "ADDR", "TLS", "API_KEY"), rows))
    return 0


def _show(args: argparse.Namespace) -> int:
    book = _read()
    name = args.name or book["current"]
    document = _document(name, _known(book, name))
    current = name == book["current"]
    if args.json:
        say_json({**document, "current": current})
        return 0
    say(f"Context : {shown(name)}{' (current)' if current else ''}")
    say(f"Broker  : {shown(document['addr'])}")
    say(f"TLS     : {'yes' if document['tls'] else 'no'}")
    for field, label in (("tls_ca_cert", "CA"), ("tls_cert", "Cert"), ("tls_key", "Key")):
        if document[field]:
            say(f"{label:<8}: {shown(document[field])}")
    say(f"API key : {'set' if document['api_key_set'] else 'none'}")
    return 0


def _delete(args: argparse.Namespace) -> int:
    book = _read()
    _known(book, args.name)
    if args.name not in book["contexts"]:
        raise Failure(f'context "{args.name}" is always there and cannot be deleted')
    del book["contexts"][args.name]
    if book["current"] == args.name:
        book["current"] = DEFAULT_CONTEXT
    _write(book)
    if args.json:
        say_json({"name": args.name, "deleted": True, "current": book["current"]})
    else:
        say(f'Deleted context "{shown(args.name)}"; the current one is "{shown(book["current"])}"')
    return 0


def _known(book: dict[str, Any], name: str) -> dict[str, Any]:
    """What a context says; a failure if there is none of that name."""
    if name not in book["contexts"] and name != DEFAULT_CONTEXT:
        raise Failure(
            f'context "{name}" does not exist',
            f"`fila context set {name} --addr HOST:PORT` writes it down",
        )
    found: dict[str, Any] = book["contexts"].get(name, {})
    return found


def _use(args: argparse.Namespace) -> int:
    book = _read()
    _known(book, args.name)
    book["current"] = args.name
    _write(book)
    if args.json:
        say_json({"current": args.name})
    else:
        say(f'Using context "{shown(args.name)}"')
    return 0


def _set(args: argparse.Namespace) -> int:
    if bool(args.tls_cert) != bool(args.tls_key):
        raise usage("--tls-cert and --tls-key belong together: give both or neither")
    settings = {name: getattr(args, name) for name in _SETTINGS if getattr(args, name)}
    for name in ("tls_ca_cert", "tls_cert", "tls_key"):
        if name in settings:  # commands will be given in other directories
            settings[name] = os.path.abspath(settings[name])
    book = _read()
    book["contexts"][args.name] = settings
    _write(book)
    if args.json:
        say_json(_document(args.name, settings))
    else:
        say(f'Set context "{shown(args.name)}"')
    return 0


def _document(name: str, settings: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "addr": settings.get("addr", DEFAULT_ADDR),
        "tls": _is_tls(settings),
        "tls_ca_cert": settings.get("tls_ca_cert"),
        "tls_cert": settings.get("tls_cert"),
        "tls_key": settings.get("tls_key"),
        "api_key_set": bool(settings.get("api_key")),
    }


def _is_tls(settings: dict[str, Any]) -> bool:
    return any(settings.get(name) for name in ("tls", "tls_ca_cert", "tls_cert"))


def _read() -> dict[str, Any]:
    import json

    try:
        with open(path(), encoding="utf-8") as file:
            book = json.load(file)
        contexts = book.get("contexts", {})
        current = book.get("current", DEFAULT_CONTEXT)
        for settings in contexts.values():
            _check(settings)
    except FileNotFoundError:
        return {"current": DEFAULT_CONTEXT, "contexts": {}}
    except OSError as error:
        raise unreadable(path(), error) from error
    except (ValueError, AttributeError, TypeError) as error:
        raise Failure(
            f"{path()} is not a contexts file: {error}", "mend it, or delete it to start afresh"
        ) from error
    return {"current": current, "contexts": contexts}


def _check(settings: dict[str, Any]) -> None:
    for name, value in settings.items():
        if name in _SETTINGS and not isinstance(value, bool if name == "tls" else str):
            raise ValueError(f'"{name}" cannot be {value!r}')


def _write(book: dict[str, Any]) -> None:
    """Replace the file in one step: a reader never sees half of it, nor anybody else any of it."""
    import json

    target = path()
    beside = f"{target}.{os.getpid()}.tmp"
    try:
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(book, file, indent=2, ensure_ascii=False)
            file.write("\n")
        os.replace(beside, target)
    except OSError as error:
        raise Failure(f"cannot write {target}: {error.strerror or error}") from error
