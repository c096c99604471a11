"""Brokers for tests: a real one in a temporary directory, and one in memory.

    from fila.testing import broker, memory_broker

    with broker() as running:               # a process of its own on a real store
        client = running.client()

    with memory_broker() as running:        # a thread of this process, nothing on disk
        client = running.client()

Both listen on a free loopback port and know nothing of the environment or of configuration files.
They need the broker: `pip install 'fila-broker[server]'`. See docs/testing.md.
"""

from fila.testing.failure import BrokerError as BrokerError
from fila.testing.memory import MemoryBroker as MemoryBroker
from fila.testing.memory import memory_broker as memory_broker
from fila.testing.process import RealBroker as RealBroker
from fila.testing.process import broker as broker

__all__ = ["BrokerError", "MemoryBroker", "RealBroker", "broker", "memory_broker"]
