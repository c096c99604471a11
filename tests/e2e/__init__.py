"""The whole broker from outside: real processes, real sockets, real disks."""
