"""The distributions inside the archive beside Fila and Python itself.

Their metadata goes along (`fila version --verbose` reads it), and so do their licences.
"""

from typing import Final

DISTRIBUTIONS: Final = (
    "fila-broker",
    "googleapis-common-protos",
    "grpcio",
    "h11",
    "hpack",
    "lupa",
    "opentelemetry-api",
    "opentelemetry-exporter-otlp-common",
    "opentelemetry-exporter-otlp-proto-common",
    "opentelemetry-exporter-otlp-proto-grpc",
    "opentelemetry-proto",
    "opentelemetry-sdk",
    "opentelemetry-semantic-conventions",
    "protobuf",
    "rocksdict",
    "typing-extensions",
    "uvloop",
)
