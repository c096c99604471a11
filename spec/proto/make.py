"""Write what is made from the .proto files: Python modules and the reference in docs/grpc.md.

    python spec/proto/make.py           write them
    python spec/proto/make.py --check   say whether they are up to date (exit 1 if not)

Needs grpcio-tools (extra `dev`). The version of protoc is pinned in constraints.txt.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

import reference
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from grpc_tools import protoc

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
PACKAGE = ROOT / "src/fila/edges/grpc/v1"
PAGE = ROOT / "docs/grpc.md"
FILA = (
    "fila/v1/messages.proto",
    "fila/v1/service.proto",
    "fila/v1/bulk.proto",
    "fila/v1/admin.proto",
)
STANDARD = ("grpc/health/v1/health.proto", "grpc/reflection/v1/reflection.proto")


def main() -> int:
    stale = []
    for path, text in files().items():
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(path.relative_to(ROOT))
    for path in stale:
        print(f"{path} is out of date: run python spec/proto/make.py")
    return 1 if stale else 0


def files() -> dict[Path, str]:
    """Every generated file and what belongs in it."""
    made = {}
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory)
        _protoc(*FILA, *STANDARD, f"--python_out={out}", f"--pyi_out={out}")
        for path in sorted(out.rglob("*_pb2.py*")):
            made[PACKAGE / path.name] = _at_home(path.read_text(encoding="utf-8"))
        described = out / "described"
        _protoc(*FILA, f"--descriptor_set_out={described}", "--include_source_info")
        set_ = FileDescriptorSet.FromString(described.read_bytes())
    page = PAGE.read_text(encoding="utf-8")
    made[PAGE] = page[: page.index(reference.MARK)] + reference.page(set_)
    return made


def _protoc(*arguments: str) -> None:
    well_known = Path(protoc.__file__).with_name("_proto")
    code = protoc.main(["protoc", f"-I{HERE}", f"-I{well_known}", *arguments])
    if code != 0:
        raise SystemExit(f"protoc failed with code {code}")


def _at_home(text: str) -> str:
    """The modules live in fila.edges.grpc.v1, wherever protoc believes them to be."""
    return re.sub(r"from (fila|grpc\.\w+)\.v1 import", "from fila.edges.grpc.v1 import", text)


if __name__ == "__main__":
    sys.exit(main())
