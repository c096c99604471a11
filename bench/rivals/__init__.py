"""The same work for Fila and for the brokers one would take instead, in one run on one machine.

install     fetch the rivals: Debian packages and wheels, unpacked below bench/.rivals/
servers     start and stop each one on free loopback ports, with data of its own
clients     each one's usual Python client, behind one small interface
worker      the load processes, the same for all
contests    the workloads

python -m bench.rivals [--short | --full] [name …]
"""
