"""`fila pipeline archive|replay|import|submit|init`: messages between queues and files, on Spark.

Owns the command line of these jobs. They are in `fila.spark.jobs`, which is imported only when one
runs.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fila.cli import connection
from fila.cli.failure import Failure, usage
from fila.cli.options import Subparsers, command, whole_number
from fila.cli.output import note, say

if TYPE_CHECKING:
    from fila.spark.report import Report

VERBS: Final = frozenset(("archive", "replay", "import", "submit", "init"))
_FORMATS: Final = ("csv", "json", "parquet")


def add_parsers(verb: Subparsers, pair: Any, duration_s: Any) -> None:
    """`pair` and `duration_s` read NAME=VALUE and times, as for the reports."""
    archive = _job(
        verb,
        "archive",
        "move a queue's messages to Parquet files",
        "Consume a queue into Parquet files by day (UTC), each message exactly once, also when\n"
        "it is killed: the next run goes on. Once, for what is waiting now, or --every so often.",
        "  fila pipeline archive --queue orders --to lake/orders\n"
        "  fila pipeline archive --queue orders --to lake/orders --every 30s",
        pair,
    )
    archive.add_argument("--queue", metavar="QUEUE", required=True, help="what to archive")
    archive.add_argument("--to", metavar="PATH", required=True, help="any place Spark can write")
    archive.add_argument(
        "--every", metavar="TIME", type=duration_s, default=0.0,
        help="go on, with a batch every so often, until interrupted",
    )  # fmt: skip
    archive.add_argument(
        "--rows", metavar="N", type=whole_number(1, "a number of rows"), default=0,
        help="most messages of a batch (default 50000)",
    )  # fmt: skip
    archive.add_argument(
        "--visibility", metavar="TIME", type=duration_s, default=0.0,
        help="how long messages wait for a run that was killed to be started again (default 5m)",
    )  # fmt: skip
    _replay(verb, pair)
    _import(verb, pair)
    submit = command(
        verb,
        "submit",
        "run one of these jobs by spark-submit",
        about="Ship this package and run a job of `fila pipeline` on a cluster: standalone, YARN\n"
        "or Kubernetes. Workers need Python with pyarrow; the package comes along.",
        examples="  fila pipeline submit --master spark://host:7077 -- "
        "archive --queue orders --to s3a://lake/orders\n"
        "  fila pipeline submit --master yarn --deploy-mode cluster --dry-run -- "
        "archive --queue orders --to hdfs:///orders",
    )
    submit.add_argument("--master", metavar="URL", required=True, help="the cluster")
    submit.add_argument(
        "--deploy-mode", choices=("client", "cluster"), default="client",
        help="where the driver runs: here, or in the cluster (default %(default)s)",
    )  # fmt: skip
    _conf(submit, pair)
    submit.add_argument("--dry-run", action="store_true", help="show the command, run nothing")
    submit.add_argument("words", metavar="JOB", nargs="+", help="the job and its options, after --")
    init = command(
        verb,
        "init",
        "make a small project with a job of your own",
        about="Write a folder with a job on a queue's dead letters, its test, and how to run them.",
        examples="  fila pipeline init mending --queue orders",
    )
    init.add_argument("folder", metavar="FOLDER", help="is made if it is not there")
    init.add_argument("--queue", metavar="QUEUE", default="orders", help="(default %(default)s)")


def run(args: argparse.Namespace) -> Report | int:
    """A report to be written, or an exit code."""
    if args.verb == "init":
        return _run_init(args)
    if args.verb == "submit":
        return _run_submit(args)
    from fila.spark.jobs.asked import Job
    from fila.spark.jobs.asked import run as run_job

    where = connection.target(args)
    broker = {"address": where.addr}
    given = {
        "tls": "true" if where.tls else None,
        "tlsCa": where.tls_ca,
        "tlsCert": where.tls_cert,
        "tlsKey": where.tls_key,
    }
    broker |= {name: value for name, value in given.items() if value}
    options = dict(vars(args))
    if args.verb == "import":
        options["header"] = dict(args.header)
        options["format"] = args.format or _format_of(args.path)
    job = Job(
        args.verb, broker, where.api_key or "", args.master, args.remote, dict(args.conf), options
    )
    return run_job(job, note)


def _format_of(path: str) -> str:
    ending = path.rstrip("/").rpartition(".")[2].lower()
    if ending not in _FORMATS:
        raise usage(f"which format is {path}? Say --format {', '.join(_FORMATS)}")
    return ending


def _run_init(args: argparse.Namespace) -> int:
    from fila.spark.jobs.project import ProjectExists, create

    try:
        made = create(Path(args.folder), args.queue)
    except ProjectExists as error:
        raise Failure(str(error)) from error
    except OSError as error:
        raise Failure(f"cannot write {args.folder}: {error.strerror or error}") from error
    say("\n".join(f"wrote {path}" for path in made))
    return 0


def _run_submit(args: argparse.Namespace) -> int:
    from fila.spark.jobs.submit import submission

    words = list(args.words)
    if words[0] in ("submit", "init", "doctor"):
        raise usage(f"{words[0]} cannot be submitted; a report, archive, replay or import can")
    where = connection.target(args)
    if not any(word == "--addr" or word.startswith("--addr=") for word in words):
        words += ["--addr", where.addr]
    made = submission(args.master, args.deploy_mode, dict(args.conf), words, where.api_key or "")
    if args.dry_run:
        say(shlex.join(made.command))
        return 0
    return subprocess.run(made.command, env=made.environ, check=False).returncode


def _replay(verb: Subparsers, pair: Any) -> None:
    parser = _job(
        verb,
        "replay",
        "send archived or dead-lettered messages again",
        "Choose messages of an archive or a queue by SQL and enqueue copies of them. Shows what\n"
        "it would do unless --execute is given. Each message goes once per run; the header\n"
        "replay_of tells its first id. Columns: message_id, queue, payload, text, headers,\n"
        "fairness_key, weight, throttle_keys, attempts, enqueued_at.",
        "  fila pipeline replay --queue orders.dlq --where \"text like '%timeout%'\" --to orders\n"
        "  fila pipeline replay --archive lake/orders --where \"date = '2026-01-31'\" "
        "--to orders --rate 100 --execute",
        pair,
    )
    parser.add_argument("--archive", metavar="PATH", default="", help="what `archive` has written")
    parser.add_argument(
        "--queue", metavar="QUEUE", default="", help="or a queue, read as it is now"
    )
    parser.add_argument("--where", metavar="SQL", default="", help="which messages (default: all)")
    parser.add_argument("--to", metavar="QUEUE", required=True, help="where the copies go")
    parser.add_argument(
        "--run", metavar="NAME", default="",
        help="name of the run (default: made from the question, so that repeating repeats nothing)",
    )  # fmt: skip
    parser.add_argument("--execute", action="store_true", help="send them")
    parser.add_argument(
        "--window-keys", metavar="N", type=whole_number(1, "a number of keys"),
        default=1_000_000,
        help="the broker's idempotency.max_keys: larger runs are refused (default 1,000,000)",
    )  # fmt: skip
    _rate(parser)


def _import(verb: Subparsers, pair: Any) -> None:
    parser = _job(
        verb,
        "import",
        "enqueue rows of CSV, JSON or Parquet files",
        "Every row becomes a message. Options take SQL expressions over the columns of the files.",
        "  fila pipeline import users.csv --to welcome --fairness-key tenant "
        "--idempotency-key id\n"
        "  fila pipeline import events/ --format parquet --to events "
        "--payload 'to_json(struct(id, kind))'",
        pair,
    )
    parser.add_argument("path", metavar="PATH", help="a file or folder, any place Spark can read")
    parser.add_argument("--to", metavar="QUEUE", required=True, help="the queue")
    parser.add_argument("--format", choices=_FORMATS, help="(default: by the name's ending)")
    parser.add_argument("--where", metavar="SQL", default="", help="which rows (default: all)")
    parser.add_argument(
        "--payload", metavar="SQL", default="",
        help="(default: the column payload, else the whole row as JSON)",
    )  # fmt: skip
    for name in ("fairness-key", "weight", "delay-ms", "idempotency-key"):
        parser.add_argument(f"--{name}", metavar="SQL", default="", help=f"{name} of each message")
    parser.add_argument(
        "--header", metavar="NAME=SQL", action="append", default=[],
        type=pair("a header NAME=SQL"), help="a header; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--throttle-key", metavar="SQL", action="append", default=[],
        help="a throttle key; may be repeated",
    )  # fmt: skip
    parser.add_argument("--dry-run", action="store_true", help="count the rows, send nothing")
    _rate(parser)


def _job(
    verb: Subparsers, name: str, summary: str, about: str, examples: str, pair: Any
) -> argparse.ArgumentParser:
    parser = command(verb, name, summary, about=about, examples=examples)
    parser.add_argument(
        "--master", metavar="URL", default="",
        help="Spark master, such as local[2] or spark://host:7077 (default: all local cores)",
    )  # fmt: skip
    parser.add_argument(
        "--remote", metavar="URL", default="", help="Spark Connect server: sc://host:15002"
    )
    _conf(parser, pair)
    parser.add_argument(
        "--output", metavar="FORM", action="append",
        help="table, json or csv (default table); may be repeated",
    )  # fmt: skip
    return parser


def _conf(parser: argparse.ArgumentParser, pair: Any) -> None:
    parser.add_argument(
        "--conf", metavar="NAME=VALUE", action="append", default=[],
        type=pair("a setting NAME=VALUE"), help="Spark setting; may be repeated",
    )  # fmt: skip


def _rate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--rate", metavar="N", type=whole_number(1, "messages a second"), default=0,
        help="at most so many messages a second (default: as fast as it can)",
    )  # fmt: skip
