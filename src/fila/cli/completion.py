"""`fila completion bash|zsh|fish`: what the shell needs to complete commands, options and names.

Owns the three scripts, made from the parsers. For names they run `fila completion queues` or
`contexts`, which prints only names without any sign that means something to a shell: a queue's name
can never be run by one.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable
from typing import Final

from fila.cli.options import Subparsers, children, command, summaries, walk
from fila.cli.output import say_json

SHELLS: Final = ("bash", "zsh", "fish")
NAMES: Final = ("queues", "contexts")
CONNECT_TIMEOUT_S: Final = 2.0  # somebody waits for the answer to a key
# Where a name of either kind is wanted.
TAKES: Final = {
    "queues": (
        "consume", "dlq delete", "dlq export", "dlq groups", "dlq list", "dlq redrive", "dlq show",
        "enqueue", "explain", "hooks deploy", "hooks diff", "hooks history", "hooks rollback",
        "hooks show", "hooks status", "key pause", "key resume", "queue delete", "queue export",
        "queue inspect", "queue pause", "queue peek", "queue purge", "queue resume",
        "queue settings", "queue update", "redrive", "stats", "top",
    ),
    "contexts": ("context delete", "context set", "context show", "context use"),
}  # fmt: skip
CONNECTION: Final = ("--addr", "--tls-ca-cert", "--tls-cert", "--tls-key", "--api-key")
_PLAIN: Final = re.compile(r"[\w.:@/+][\w.:@/+-]*", re.ASCII)


def add_parser(subparsers: Subparsers) -> None:
    parser = command(
        subparsers,
        "completion",
        "print a completion script for your shell",
        about="Print a script that teaches your shell to complete fila's commands, options, and\n"
        "the names of queues and contexts. Scripts ask `fila completion queues` for the names,\n"
        "which gives up after two seconds when the broker does not answer.",
        examples="  source <(fila completion bash)                                  # this shell\n"
        "  fila completion bash > ~/.local/share/bash-completion/completions/fila\n"
        '  fila completion zsh > "${fpath[1]}/_fila"\n'
        "  fila completion fish > ~/.config/fish/completions/fila.fish",
    )
    parser.add_argument(
        "shell",
        metavar="SHELL",
        choices=(*SHELLS, *NAMES),
        help="bash, zsh or fish; queues and contexts print names, one per line",
    )


def run(args: argparse.Namespace) -> int:
    import sys

    from fila.cli.main import parser

    if args.shell in NAMES:
        names = [name for name in _names(args) if _PLAIN.fullmatch(name)]
        if args.json:
            say_json({"names": names})
        else:
            sys.stdout.writelines(f"{name}\n" for name in names)
        return 0
    script = {"bash": bash, "zsh": zsh, "fish": fish}[args.shell](parser())
    if args.json:
        say_json({"shell": args.shell, "script": script})
    else:
        sys.stdout.write(script)
    return 0


def _names(args: argparse.Namespace) -> list[str]:
    """What there is; nothing where the broker cannot be asked."""
    from fila.cli.connection import open_client
    from fila.cli.context import names
    from fila.cli.failure import Failure
    from fila.client.errors import FilaError

    try:
        if args.shell == "contexts":
            return names()
        with open_client(args, connect_timeout_s=CONNECT_TIMEOUT_S) as client:
            return [queue.name for queue in client.list_queues(timeout=CONNECT_TIMEOUT_S)]
    except (Failure, FilaError):
        return []


def bash(root: argparse.ArgumentParser) -> str:
    """Finds the sub-command among the words before the cursor, then offers what fits there."""
    cases = "\n".join(
        f'    "{" ".join(path)}") words="{" ".join(_words(parser))}" ;;'
        for path, parser in walk(root, ())
    )
    return f"""\
# bash completion for fila
_fila() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous="" path="" word words="" index names=""
  local -a connection=()
  for ((index = 1; index < COMP_CWORD; index++)); do
    word=${{COMP_WORDS[index]}}
    case "$previous" in
      {_alternatives(CONNECTION)}) connection+=("$previous" "$word") ;;
    esac
    case "$word" in --tls) connection+=(--tls) ;; esac
    case "$previous" in
      {_alternatives(_valued(root))}) previous=""; continue ;;
    esac
    previous=$word
    case "${{path:+$path }}$word" in
      {_alternatives(_paths(root))}) path="${{path:+$path }}$word" ;;
    esac
  done
  previous=${{COMP_WORDS[COMP_CWORD - 1]}}
  case "$previous" in
    {_alternatives(_file_options(root))}) COMPREPLY=($(compgen -f -- "$current")); return ;;
    {_alternatives(_valued(root))}) return ;;
  esac
  case "$path" in
{cases}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  case "$path" in
    {_alternatives(TAKES["queues"])}) names=queues ;;
    {_alternatives(TAKES["contexts"])}) names=contexts ;;
    *) return ;;
  esac
  case "$current" in -*) return ;; esac
  while IFS= read -r word; do
    case "$word" in "$current"*) COMPREPLY+=("$word") ;; esac
  done < <("${{COMP_WORDS[0]}}" "${{connection[@]}}" completion "$names" 2>/dev/null)
}}
complete -o filenames -F _fila fila
"""


def zsh(root: argparse.ArgumentParser) -> str:
    cases = "\n".join(
        f"    {_quoted(' '.join(path))}) offers=({' '.join(map(_quoted, _described(parser)))}) ;;"
        for path, parser in walk(root, ())
    )
    return f"""\
#compdef fila
# zsh completion for fila
_fila() {{
  local trail="" previous="" word candidate kind=""
  local -a offers connection names
  for word in ${{words[2,CURRENT-1]}}; do
    case "$previous" in
      {_alternatives(CONNECTION)}) connection+=("$previous" "$word") ;;
    esac
    case "$word" in --tls) connection+=(--tls) ;; esac
    case "$previous" in
      {_alternatives(_valued(root))}) previous=""; continue ;;
    esac
    previous=$word
    candidate="${{trail:+$trail }}$word"
    case "$candidate" in
      {_alternatives(_paths(root))}) trail=$candidate ;;
    esac
  done
  case "$words[CURRENT-1]" in
    {_alternatives(_file_options(root))}) _files; return ;;
    {_alternatives(_valued(root))}) return ;;
  esac
  case "$trail" in
{cases}
  esac
  _describe -t commands fila offers
  case "$trail" in
    {_alternatives(TAKES["queues"])}) kind=queues ;;
    {_alternatives(TAKES["contexts"])}) kind=contexts ;;
    *) return ;;
  esac
  "${{words[1]}}" "${{connection[@]}}" completion $kind 2>/dev/null | while IFS= read -r word; do
    names+=("$word")
  done
  compadd -a names
}}
if [ "$funcstack[1]" = "_fila" ]; then
  _fila "$@"
else
  compdef _fila fila
fi
"""


def fish(root: argparse.ArgumentParser) -> str:
    lines = [
        "# fish completion for fila",
        "function __fila_at",
        "    set -l words (commandline -opc)",
        "    set -l trail",
        "    for word in $words[2..-1]",
        "        switch (string join ' ' -- $trail $word)",
        f"            case {' '.join(map(_quoted, _paths(root)))}",
        "                set -a trail $word",
        "        end",
        "    end",
        '    test "$trail" = "$argv[1]"',
        "end",
        "complete -c fila -f",
    ]
    for path, parser in walk(root, ()):
        here = f"complete -c fila -n {_quoted(f'__fila_at {_quoted(chr(32).join(path))}')}"
        for name, summary in summaries(parser).items():
            lines.append(f"{here} -a {name} -d {_quoted(_first_clause(summary))}")
        for option in _options(parser):
            needs = "" if option.nargs == 0 else " -rF" if _takes_file(option) else " -x"
            name = option.option_strings[-1].lstrip("-")
            lines.append(f"{here} -l {name}{needs} -d {_quoted(_first_clause(option.help or ''))}")
        for choice in _choices(parser):
            lines.append(f"{here} -a {choice}")
        for kind, paths in TAKES.items():
            if " ".join(path) in paths:
                lines.append(f"{here} -a '(fila completion {kind} 2>/dev/null)'")
    return "\n".join(lines) + "\n"


def _words(parser: argparse.ArgumentParser) -> list[str]:
    options = [option.option_strings[-1] for option in _options(parser)]
    return [*children(parser), *_choices(parser), *options]


def _described(parser: argparse.ArgumentParser) -> list[str]:
    """`word:what it does`, as zsh wants it."""
    words = [f"{name}:{_first_clause(text)}" for name, text in summaries(parser).items()]
    words += _choices(parser)
    for option in _options(parser):
        words.append(f"{option.option_strings[-1]}:{_first_clause(option.help or '')}")
    return words


def _options(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [action for action in parser._actions if action.option_strings]


def _choices(parser: argparse.ArgumentParser) -> list[str]:
    """What a positional argument may be, where it is one of a few words."""
    return [
        str(choice)
        for action in parser._actions
        if not action.option_strings and not isinstance(action, argparse._SubParsersAction)
        for choice in action.choices or ()
    ]


def _paths(root: argparse.ArgumentParser) -> list[str]:
    return [" ".join(path) for path, _ in walk(root, ()) if path]


def _valued(root: argparse.ArgumentParser) -> list[str]:
    """Options that are followed by a value."""
    return _option_names(root, lambda option: option.nargs != 0)


def _file_options(root: argparse.ArgumentParser) -> list[str]:
    return _option_names(root, _takes_file)


def _option_names(
    root: argparse.ArgumentParser, wanted: Callable[[argparse.Action], bool]
) -> list[str]:
    return sorted(
        {
            option.option_strings[-1]
            for _, parser in walk(root, ())
            for option in _options(parser)
            if wanted(option)
        }
    )


def _takes_file(option: argparse.Action) -> bool:
    return option.metavar == "FILE"


def _first_clause(text: str) -> str:
    """Short enough for a menu, and without the signs that mean something to zsh's _describe."""
    first = text.splitlines()[0] if text else ""
    return first.partition(";")[0].partition(":")[0].partition(" (")[0].replace("%%", "%").strip()


def _alternatives(words: Iterable[str]) -> str:
    return "|".join(f'"{word}"' for word in words)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
