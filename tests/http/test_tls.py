"""The HTTP port under TLS: the certificates of the broker, and a cookie that stays encrypted."""

from __future__ import annotations

import http.client
import json
import ssl
from pathlib import Path

import pytest

from tests.http.conftest import ROOT
from tests.http.visitor import HttpBroker
from tests.security.certificates import OPENSSL, Authority

pytestmark = pytest.mark.skipif(OPENSSL is None, reason="needs the openssl program")


def test_the_dashboard_is_served_over_https_with_the_brokers_certificates(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    own = authority.issue("localhost")
    settings = {
        "tls.cert_file": own.cert,
        "tls.key_file": own.key,
        "auth.bootstrap_apikey": ROOT,
    }
    broker = HttpBroker(tmp_path / "data", settings=settings)
    with broker:
        context = ssl.create_default_context(cafile=str(authority.cert))
        context.set_alpn_protocols(["h2", "http/1.1"])
        secure = http.client.HTTPSConnection(*broker.http_address, context=context, timeout=10)
        headers = {"Content-Type": "application/json"}
        secure.request("POST", "/api/v1/login", json.dumps({"api_key": ROOT}), headers)
        response = secure.getresponse()
        assert response.status == 200
        assert "; Secure" in (response.headers["Set-Cookie"] or "")
        response.read()
        secure.request("GET", "/healthz")
        assert secure.getresponse().read() == b"ok\n"
        secure.close()
        plain = http.client.HTTPConnection(*broker.http_address, timeout=10)
        plain.request("GET", "/healthz")
        with pytest.raises((http.client.BadStatusLine, ConnectionError)):
            plain.getresponse()
        plain.close()
