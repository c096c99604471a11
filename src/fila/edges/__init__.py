"""Sockets: the listener and the protocols spoken on its port."""
