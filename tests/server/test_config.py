"""Where settings come from, which source wins, and what is said about those that are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from fila.server import config
from fila.server.config import MOVED, RETIRED, ConfigError, Loaded, load
from fila.server.settings import Settings


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, and no system-wide file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(config, "SEARCH_PATH", (Path("fila.toml"), tmp_path / "etc" / "fila.toml"))
    return tmp_path


def write(text: str, path: str = "fila.toml") -> None:
    Path(path).parent.mkdir(exist_ok=True)
    Path(path).write_text(text)


def load_with(environ: dict[str, str] | None = None, **overrides: str) -> Loaded:
    return load(None, environ or {}, {name.replace("__", "."): v for name, v in overrides.items()})


def fault(text: str = "", environ: dict[str, str] | None = None) -> str:
    if text:
        write(text)
    with pytest.raises(ConfigError) as raised:
        load_with(environ)
    message = str(raised.value)
    assert "\n" not in message
    return message


def test_without_anything_there_are_defaults() -> None:
    loaded = load_with()
    assert loaded == Loaded(Settings(), "defaults", [])
    assert loaded.settings.listen_addrs == ("0.0.0.0:5555",)
    assert loaded.settings.scheduler.quantum == 1
    assert loaded.settings.storage.durability == "os"


def test_the_file_in_the_working_directory_comes_before_the_system_wide_one(
    directory: Path,
) -> None:
    write("[scheduler]\nquantum = 3\n", "etc/fila.toml")
    assert load_with().settings.scheduler.quantum == 3
    assert load_with().source == str(directory / "etc" / "fila.toml")
    write("[scheduler]\nquantum = 4\n")
    assert load_with().settings.scheduler.quantum == 4
    assert load_with().source == "fila.toml"


def test_a_named_file_comes_before_both() -> None:
    write("[scheduler]\nquantum = 4\n")
    write("[scheduler]\nquantum = 5\n", "mine.toml")
    assert load("mine.toml", {}, {}).settings.scheduler.quantum == 5


def test_a_named_file_that_is_missing_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"^mine.toml: no such file$"):
        load("mine.toml", {}, {})


def test_the_environment_comes_before_the_file_and_the_command_line_before_both() -> None:
    write("[server]\nlisten_addr = '0.0.0.0:1'\n[storage]\ndata_dir = 'file'\n")
    environ = {"FILA_SERVER__LISTEN_ADDR": "0.0.0.0:2", "FILA_DATA_DIR": "environ"}
    loaded = load_with(environ).settings
    assert (loaded.server.listen_addr, loaded.storage.data_dir) == ("0.0.0.0:2", "environ")
    loaded = load_with(
        environ, server__listen_addr="0.0.0.0:3", storage__data_dir="command"
    ).settings
    assert (loaded.server.listen_addr, loaded.storage.data_dir) == ("0.0.0.0:3", "command")


def test_any_setting_can_be_overridden_in_the_environment() -> None:
    environ = {
        "FILA_SCHEDULER__QUANTUM": "7",
        "FILA_STORAGE__DURABILITY": "fsync",
        "FILA_FIBP__MAX_FRAME_SIZE": " 8192 ",
        "FILA_LOG__FORMAT": "human",
        "FILA_JOURNAL__ENABLED": "true",
    }
    loaded = load_with(environ)
    assert loaded.warnings == []
    assert loaded.settings.scheduler.quantum == 7
    assert loaded.settings.storage.durability == "fsync"
    assert loaded.settings.fibp.max_frame_size == 8_192
    assert loaded.settings.log.format == "human"
    assert loaded.settings.journal.enabled is True


def test_both_addresses_are_listened_on_when_both_are_given() -> None:
    write("[server]\nlisten_addr = '0.0.0.0:1'\n[fibp]\nlisten_addr = '0.0.0.0:2'\n")
    assert load_with().settings.listen_addrs == ("0.0.0.0:1", "0.0.0.0:2")


def test_the_fibp_address_alone_replaces_the_default() -> None:
    assert load_with().settings.listen_addrs == ("0.0.0.0:5555",)
    write("[fibp]\nlisten_addr = '0.0.0.0:2'\n")
    assert load_with().settings.listen_addrs == ("0.0.0.0:2",)


def test_one_address_given_twice_is_one_unless_the_ports_are_to_be_found() -> None:
    write("[server]\nlisten_addr = ':7'\n[fibp]\nlisten_addr = ':7'\n")
    assert load_with().settings.listen_addrs == (":7",)
    write("[server]\nlisten_addr = ':0'\n[fibp]\nlisten_addr = ':0'\n")
    assert load_with().settings.listen_addrs == (":0", ":0")


def test_a_bootstrap_key_in_the_server_section_turns_authentication_on() -> None:
    write("[server]\nbootstrap_apikey = 'secret'\n")
    loaded = load_with()
    assert loaded.warnings == []
    assert loaded.settings.auth_enabled
    assert loaded.settings.auth.bootstrap_apikey == "secret"
    write("")
    by_environment = load_with({"FILA_SERVER__BOOTSTRAP_APIKEY": "other"}).settings
    assert by_environment.auth_enabled
    assert by_environment.auth.bootstrap_apikey == "other"


@pytest.mark.parametrize("section", ["server", "auth", "tls", "security", "Server"])
def test_a_misspelt_bootstrap_key_is_refused_not_ignored(section: str) -> None:
    write(f"[{section}]\nbootstrap_api_key = 'secret'\n")
    with pytest.raises(ConfigError) as refused:
        load_with()
    assert "write [auth] bootstrap_apikey" in str(refused.value)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "bootstrap_apikey = 'secret'\n",
        "bootstrap-key = 'secret'\n",
        "[security]\nbootstrap_apikey = 'secret'\n",
        "[server]\nBootstrap_ApiKey = 'secret'\n",
        "[auth]\nbootstrap_key = 'secret'\n",
    ],
)
def test_a_bootstrap_key_in_a_place_where_it_does_not_count_is_refused(text: str) -> None:
    said = fault(text)
    assert "write [auth] bootstrap_apikey" in said and "secret" not in said


@pytest.mark.parametrize("name", ["Auth", "AUTH", "authentication", "authorization", "auth_n"])
def test_a_section_that_was_meant_to_be_auth_is_refused_even_when_it_is_empty(name: str) -> None:
    assert "authentication is [auth]" in fault(f"[{name}]\n")


@pytest.mark.parametrize(
    "name",
    [
        "FILA_BOOTSTRAP_API_KEY",
        "FILA_BOOTSTRAP_KEY",
        "FILA_AUTH_BOOTSTRAP_APIKEY",
        "FILA_AUTH_ENABLED",
        "FILA_AUTHENTICATION__BOOTSTRAP_APIKEY",
        "FILA_SECURITY__BOOTSTRAP_APIKEY",
    ],
)
def test_an_environment_variable_that_was_meant_to_be_a_key_is_refused(name: str) -> None:
    said = fault(environ={name: "secret"})
    assert said.startswith(name) and "secret" not in said


@pytest.mark.parametrize(
    ("text", "environ"),
    [
        ("", {"FILA_BOOTSTRAP_APIKEY": ""}),
        ("", {"FILA_AUTH__BOOTSTRAP_APIKEY": ""}),
        ("", {"FILA_SERVER__BOOTSTRAP_APIKEY": ""}),
        ("[server]\nbootstrap_apikey = ''\n", {}),
    ],
)
def test_an_empty_key_does_not_start_a_server_open(text: str, environ: dict[str, str]) -> None:
    assert "is empty, and without a key everybody may do everything" in fault(text, environ)
    write("[auth]\n" + text)  # where authentication is on anyway, it says nothing
    assert load_with(environ).settings.auth_enabled


@pytest.mark.parametrize(
    ("text", "named", "nearest"),
    [
        ("[scheduler]\nquantun = 1\n", "scheduler.quantun", "quantum"),
        ("[storage]\ndata_directory = 'x'\n", "storage.data_directory", "data_dir"),
        ("[shceduler]\nquantum = 1\n", "[shceduler]", "scheduler"),
        ("durability = 'fsync'\n", "durability", None),
        ("[tracing]\nendpoint = ''\n", "[tracing]", None),
    ],
)
def test_an_unknown_key_is_a_warning_that_names_the_nearest(
    text: str, named: str, nearest: str | None
) -> None:
    write(text)
    loaded = load_with()
    [warning] = loaded.warnings
    assert warning.startswith("fila.toml: ")
    assert named in warning
    assert "is ignored" in warning
    assert (f'did you mean "{nearest}"?' in warning) is (nearest is not None)
    assert loaded.settings == Settings()


def test_a_setting_that_moved_works_under_its_old_name_with_a_warning() -> None:
    write("[fibp]\nprefetch = 7\nmax_consumers_per_connection = 3\n")
    loaded = load_with({"FILA_FIBP__HANDSHAKE_TIMEOUT_MS": "500"})
    connection = loaded.settings.connection
    assert (connection.prefetch, connection.max_consumers) == (7, 3)
    assert connection.handshake_timeout_ms == 500
    assert len(loaded.warnings) == 3
    assert any(
        "fibp.max_consumers_per_connection is called connection.max_consumers now" in one
        for one in loaded.warnings
    )


def test_every_moved_setting_has_a_place_and_no_retired_one_has() -> None:
    settings = load_with().settings
    for (section, old), (place, new) in MOVED.items():
        assert not hasattr(getattr(settings, section), old)
        assert hasattr(getattr(settings, place), new)
    for section, old in RETIRED:
        assert not hasattr(getattr(settings, section), old)


def test_a_setting_without_effect_is_a_warning_that_says_so() -> None:
    write("[scheduler]\nidle_timeout_ms = 100\n")
    (warning,) = load_with().warnings
    assert "scheduler.idle_timeout_ms has no effect (nothing polls); remove it" in warning


def test_an_unknown_variable_is_a_warning_and_those_of_others_are_not() -> None:
    environ = {
        "FILA_STORAGE__DURABILTY": "fsync",
        "FILA_NONSENSE": "1",
        "FILA_ADDR": "localhost:5555",
        "FILA_PORT_FILE": "port",
        "PATH": "/bin",
    }
    warnings = load_with(environ).warnings
    assert len(warnings) == 2
    assert any("FILA_NONSENSE" in warning for warning in warnings)
    assert any('did you mean "durability"?' in warning for warning in warnings)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[scheduler]\nquantum = 'four'\n", "scheduler.quantum: 'four' is not a whole number"),
        ("[scheduler]\nquantum = '4'\n", "scheduler.quantum: '4' is not a whole number"),
        ("[scheduler]\nquantum = 1.5\n", "scheduler.quantum: 1.5 is not a whole number"),
        ("[scheduler]\nquantum = true\n", "scheduler.quantum: True is not a whole number"),
        ("[scheduler]\nquantum = 0\n", "scheduler.quantum: 0 is below the least, 1"),
        ("[scheduler]\nquantum = 999999\n", "quantum: 999999 is above the most, 100000"),
        ("[storage]\ndata_dir = 5\n", "storage.data_dir: 5 is not a string"),
        ("[storage]\ndurability = 'both'\n", '"both" is not one of os, fsync'),
        ("[journal]\nenabled = 'yes'\n", "journal.enabled: 'yes' is not true or false"),
        ("[server]\nlisten_addr = 'x'\n", 'server.listen_addr: "x" is not host:port'),
        ("[server]\nlisten_addr = ''\n", 'server.listen_addr: "" is not host:port'),
        ("[server]\nlisten_addr = '1.2.3.4:99999'\n", "is not host:port"),
        ("[fibp]\nlisten_addr = '[zz]:1'\n", "fibp.listen_addr"),
        ("server = 5\n", "server: is a section"),
        ("[server\n", "not valid TOML"),
        ("[cluster]\n", "[cluster] is not supported"),
    ],
)
def test_a_wrong_value_is_one_line_with_file_key_and_reason(text: str, expected: str) -> None:
    message = fault(text)
    assert message.startswith("fila.toml: ")
    assert expected in message


@pytest.mark.parametrize("text", ["--5", "5x", "", "²", "1e3", "0x10", "1_000"])
def test_a_variable_that_is_no_number_is_refused(text: str) -> None:
    message = fault(environ={"FILA_SCHEDULER__QUANTUM": text})
    assert message.startswith("FILA_SCHEDULER__QUANTUM: scheduler.quantum: ")
    assert "is not a whole number" in message


def test_a_section_that_is_not_supported_is_refused_in_the_environment_too() -> None:
    assert "not supported" in fault(environ={"FILA_CLUSTER__NODES": "3"})


def test_a_file_that_is_not_text_is_refused() -> None:
    Path("fila.toml").write_bytes(b"\xff\xfe[server]")
    assert "not valid TOML" in fault()


def test_addresses_of_every_form_are_understood() -> None:
    for address in ("127.0.0.1:0", "[::1]:5555", "localhost:65535", ":5555"):
        assert load_with({"FILA_SERVER__LISTEN_ADDR": address}).settings.listen_addrs == (address,)


def test_the_bootstrap_key_turns_authentication_on() -> None:
    assert load_with().settings.auth_enabled is False
    assert load_with({"FILA_BOOTSTRAP_APIKEY": "secret"}).settings.auth_enabled is True
    write("[auth]\n")
    assert load_with().settings.auth_enabled is True
