"""The Helm chart, rendered: what it asks for is what the broker understands."""

from __future__ import annotations

import json
import re
import socket
import ssl
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from fila import __version__
from fila.server.config import load
from fila.testing import broker
from tests.deploy.release import ROOT
from tests.security.certificates import Authority
from tests.tools import tool

CHART = ROOT / "deploy" / "helm" / "fila"
TLS = {"tls": {"enabled": True, "certSecret": "cert", "clientCaSecret": "ca"}}
EVERYTHING = {
    **TLS,
    "auth": {"bootstrapApiKey": "se'cret\""},
    "telemetry": {"enabled": True, "otlpEndpoint": "http://collector:4317"},
    "durability": "fsync",
    "env": {"FILA_SCHEDULER__TURN_MESSAGES": 500},
    "networkPolicy": {"enabled": True},
    "imagePullSecrets": [{"name": "registry"}],
    "nodeSelector": {"disk": "fast"},
    "tolerations": [{"key": "brokers"}],
    "podAnnotations": {"a": "b"},
    "persistence": {"storageClass": "ssd"},
}


def render(values: dict[str, Any], release: str = "demo") -> dict[str, Any]:
    """The objects by kind; of services, the one clients use."""
    ran = subprocess.run(
        [tool("chart"), str(CHART), release],
        input=json.dumps(values),
        capture_output=True,
        text=True,
    )
    if ran.returncode != 0:
        raise ValueError(ran.stderr)
    found = json.loads(ran.stdout)
    return {one["kind"]: one for one in reversed(found)}


def container(objects: dict[str, Any]) -> Any:
    (one,) = objects["StatefulSet"]["spec"]["template"]["spec"]["containers"]
    return one


def environment(objects: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one.get("value", "from a secret") for one in container(objects)["env"]}


def test_the_chart_has_the_version_of_the_source() -> None:
    text = (CHART / "Chart.yaml").read_text()
    assert f"\nversion: {__version__}\n" in text and f'\nappVersion: "{__version__}"\n' in text
    assert container(render({}))["image"] == f"ghcr.io/faiscadev/fila:{__version__}"


@pytest.mark.parametrize("values", [{}, EVERYTHING], ids=["as it is", "everything"])
def test_the_broker_understands_what_the_chart_sets(values: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "fila.toml").touch()
    loaded = load(str(tmp_path / "fila.toml"), environment(render(values)), {})
    assert loaded.warnings == []
    assert loaded.settings.server.listen_addr == "0.0.0.0:5555"
    assert loaded.settings.storage.data_dir == "/var/lib/fila"
    if values:
        assert loaded.settings.storage.durability == "fsync"
        assert loaded.settings.scheduler.turn_messages == 500
        assert loaded.settings.telemetry.otlp_endpoint == "http://collector:4317"
        assert loaded.settings.tls.ca_file == "/etc/fila/client-ca/ca.crt"


def test_what_is_mounted_is_a_volume_of_the_pod() -> None:
    for values in ({}, EVERYTHING, {"persistence": {"enabled": False}}):
        spec = render(values)["StatefulSet"]["spec"]
        pod = spec["template"]["spec"]
        claimed = [one["metadata"]["name"] for one in spec.get("volumeClaimTemplates", [])]
        volumes = [*claimed, *(one["name"] for one in pod["volumes"])]
        mounted = [one["name"] for one in pod["containers"][0]["volumeMounts"]]
        assert sorted(mounted) == sorted(volumes)


def test_pods_are_closed_and_selected_by_everything_that_means_them() -> None:
    objects = render(EVERYTHING)
    stateful = objects["StatefulSet"]
    pod = stateful["spec"]["template"]
    assert pod["spec"]["securityContext"]["runAsNonRoot"]
    closed = container(objects)["securityContext"]
    assert closed["readOnlyRootFilesystem"] and not closed["allowPrivilegeEscalation"]
    assert closed["capabilities"] == {"drop": ["ALL"]}
    ports = {one["name"] for one in container(objects)["ports"]}
    labels = pod["metadata"]["labels"].items()
    for selector in (
        objects["Service"]["spec"]["selector"],
        objects["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        objects["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
        stateful["spec"]["selector"]["matchLabels"],
    ):
        assert selector and selector.items() <= labels
    assert {one["targetPort"] for one in objects["Service"]["spec"]["ports"]} <= ports
    (rule,) = objects["NetworkPolicy"]["spec"]["ingress"]
    assert {one["port"] for one in rule["ports"]} == ports


def test_the_bootstrap_key_is_in_a_secret_and_nowhere_else() -> None:
    objects = render(EVERYTHING)
    secret = objects.pop("Secret")
    assert secret["stringData"] == {"bootstrap-apikey": "se'cret\""}
    assert "se'cret" not in json.dumps(objects)
    (key,) = [one for one in container(objects)["env"] if one["name"] == "FILA_BOOTSTRAP_APIKEY"]
    assert key["valueFrom"]["secretKeyRef"]["name"] == secret["metadata"]["name"]
    own = render({"auth": {"existingSecret": "mine"}})
    assert "Secret" not in own
    assert '"secretKeyRef": {"key": "bootstrap-apikey", "name": "mine"}' in json.dumps(
        own, sort_keys=True
    )


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"cluster": {"enabled": True}}, "this release has no cluster mode"),
        ({"replicaCount": 3}, "every replica is a broker of its own"),
        ({"tls": {"enabled": True}}, "tls.certSecret: name the secret"),
        ({"telemetry": {"enabled": True}}, "telemetry.otlpEndpoint: say where"),
    ],
)
def test_what_cannot_work_is_refused(values: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        render(values)


def test_every_value_is_used_by_a_template() -> None:
    templates = "".join(path.read_text() for path in (CHART / "templates").iterdir())
    section = ""
    unused = []
    for line in (CHART / "values.yaml").read_text().splitlines():
        found = re.match(r"( *)([A-Za-z]+):", line)
        if found and len(found[1]) <= 2:
            section = found[2] if not found[1] else section
            name = section if not found[1] else f"{section}.{found[2]}"
            if f".Values.{name}" not in templates and f".Values.{section} " not in templates:
                unused.append(name)
    # Sections whose keys are used, and what the cluster will read.
    assert set(unused) <= {
        "image", "cluster", "cluster.replicationFactor", "persistence", "tls", "auth", "telemetry",
        "service", "podDisruptionBudget", "networkPolicy", "probes", "resources.requests",
        "resources.limits",
    }  # fmt: skip


@pytest.mark.parametrize("how", ["plain", "TLS", "client certificates"])
def test_the_probes_find_the_broker_that_the_chart_starts(how: str, tmp_path: Path) -> None:
    settings: dict[str, object] = {"gui.listen_addr": "127.0.0.1:0"}
    values: dict[str, Any] = {}
    if how != "plain":
        authority = Authority(tmp_path / "ca")
        cert, key = authority.issue("broker")
        settings |= {"tls.cert_file": cert, "tls.key_file": key}
        values = {"tls": {"enabled": True, "certSecret": "cert"}}
    if how == "client certificates":
        settings["tls.ca_file"] = authority.cert
        values = TLS
    asking = container(render(values))
    with broker(settings) as running:
        (port,) = re.findall(r"https?://127\.0\.0\.1:(\d+)", running.log())
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            assert answers(asking[probe], int(port), running.endpoint), probe


def answers(probe: dict[str, Any], http_port: int, broker: tuple[str, int]) -> bool:
    """What a kubelet does: it looks at no certificate, and shows none."""
    if "tcpSocket" in probe:
        assert probe["tcpSocket"] == {"port": "fila"}
        socket.create_connection(broker, 10).close()
        return True
    asked = probe["httpGet"]
    url = f"{asked.get('scheme', 'HTTP').lower()}://127.0.0.1:{http_port}{asked['path']}"
    context = ssl._create_unverified_context()
    with urllib.request.urlopen(url, timeout=10, context=context) as answer:
        return bool(answer.status == 200)
