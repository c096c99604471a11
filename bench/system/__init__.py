"""Benchmarks of the whole server, over sockets, by separate load processes.

board, crew        the counters that processes share; starting, pausing and timing load
process, broker    child processes and what they use; a Fila server of our own
frames, raw        load as ready-made frames, so that the server is the limit
sdk                the same load through the Python SDK: what a user gets
cases              one module per question
measure            figures with their rounds, kept for the report and for comparison

python -m bench.system [--short | --full] [case …]
"""
