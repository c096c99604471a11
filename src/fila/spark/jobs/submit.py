"""`submit`: a job of ours by spark-submit, on standalone, YARN or Kubernetes.

Owns what has to be shipped and said. `--py-files` alone is not enough: executors find the package
there, but the processes that Spark starts beside the driver (they plan reads and ask streams for
offsets) do not. Their PYTHONPATH has to name the zip too, in the form each deployment knows.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from fila.spark.java import find_java
from fila.spark.session import package_zip

CLIENT: Final = "client"
_MAIN: Final = """import sys

from fila.cli.main import main

sys.exit(main(["pipeline", *sys.argv[1:]]))
"""


class Submission(NamedTuple):
    command: list[str]
    environ: dict[str, str]


def submission(
    master: str,
    deploy_mode: str,
    conf: Mapping[str, str],
    words: Sequence[str],
    api_key: str = "",
    folder: Path | None = None,
) -> Submission:
    """What to run, and the environment to run it in."""
    folder = folder or Path(tempfile.mkdtemp(prefix="fila-submit-"))
    package = folder / "fila.zip"
    shutil.copyfile(package_zip(), package)
    main = folder / "fila_job.py"
    main.write_text(_MAIN)
    environ = {**os.environ, "JAVA_HOME": str(find_java().home)}
    settings = dict(conf)
    if deploy_mode == CLIENT:
        paths = [str(package), environ.get("PYTHONPATH", "")]
        environ["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
        environ.setdefault("PYSPARK_PYTHON", sys.executable)
    else:
        # The driver finds the zip in its working directory.
        for name in _driver_environment(master):
            settings.setdefault(f"{name}.PYTHONPATH", package.name)
            if api_key:
                settings.setdefault(f"{name}.FILA_API_KEY", api_key)
    if api_key:
        environ["FILA_API_KEY"] = api_key
        settings.setdefault("spark.executorEnv.FILA_API_KEY", api_key)
        settings.setdefault(
            "spark.redaction.regex", "(?i)secret|password|token|access[.]?key|api_?key"
        )
    command = [_spark_submit(), "--master", master, "--deploy-mode", deploy_mode]
    command += ["--name", f"fila {words[0]}", "--py-files", str(package)]
    if settings:
        # In a file that only we can read: arguments are shown to everybody on this machine.
        command += ["--properties-file", str(_properties(folder, settings))]
    return Submission([*command, str(main), *words], environ)


def _driver_environment(master: str) -> tuple[str, ...]:
    if master.startswith("yarn"):
        return ("spark.yarn.appMasterEnv",)
    if master.startswith("k8s"):
        return ("spark.kubernetes.driverEnv",)
    return ("spark.driverEnv",)


def _properties(folder: Path, settings: Mapping[str, str]) -> Path:
    path = folder / "spark.properties"
    path.touch(0o600)
    path.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    return path


def _spark_submit() -> str:
    home = os.environ.get("SPARK_HOME")
    if home:
        return str(Path(home) / "bin" / "spark-submit")
    import pyspark

    return str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
