"""SQS clients that the tests' own environment does not bring: `make tools` installs them.

The AWS CLI and a boto3 of the time when both spoke the query form, in an environment of their own
beside each other; and Node's `@aws-sdk/client-sqs`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools import TOOLS

AWS = TOOLS / "aws"
NODE = TOOLS / "sqs-node"
# The last ones before the JSON form; the CLI names its botocore to the last digit.
PACKAGES = ("awscli==1.29.80", "boto3==1.28.80")
NODE_PACKAGE = "@aws-sdk/client-sqs@3.1164.0"


def query_python() -> str:
    """A Python with a boto3 that speaks the query form."""
    return _there(AWS / "bin" / "python", AWS / ".ready")


def aws() -> str:
    return _there(AWS / "bin" / "aws", AWS / ".ready")


def node_modules() -> Path:
    """A directory beside whose `node_modules` a program of Node finds the client."""
    _there(NODE / "node_modules" / "@aws-sdk" / "client-sqs", NODE / ".ready")
    return NODE


def _there(path: Path, ready: Path) -> str:
    if ready.exists() and path.exists():
        return str(path)
    text = f"{path.name} is not there: `make tools` installs it"
    if os.environ.get("CI"):
        pytest.fail(text)
    pytest.skip(text)


def main() -> int:
    if not (AWS / ".ready").exists():
        print("installing the AWS CLI and a boto3 of the query form …", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(AWS)], check=True)
        pip = [str(AWS / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, "--disable-pip-version-check", *PACKAGES], check=True)
        (AWS / ".ready").touch()
    if not (NODE / ".ready").exists() and (npm := shutil.which("npm")):
        print("installing Node's SQS client …", flush=True)
        NODE.mkdir(parents=True, exist_ok=True)
        (NODE / "package.json").write_text('{"private": true, "type": "module"}\n')
        install = [npm, "install", "--silent", "--no-audit", "--no-fund", "--no-package-lock"]
        subprocess.run([*install, NODE_PACKAGE], cwd=NODE, check=True)
        (NODE / ".ready").touch()
    return 0


if __name__ == "__main__":
    sys.exit(main())
