"""The conformance runner: scenarios as data, a real broker, one adapter per language."""
