"""Each broker as a child process on free loopback ports, durable, with data of its own.

A module has `start(place) -> Running`; `place` is an empty directory.
"""
