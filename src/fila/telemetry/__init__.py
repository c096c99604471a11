"""Telemetry of the broker: instruments, the pulse that reads them, history, export."""
