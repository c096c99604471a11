"""The program `fila-server`: settings, logging, and how the parts are put together."""
