"""Ports for servers that cannot choose one themselves."""

import os
import random
import socket
from pathlib import Path


def free_port() -> int:
    """Below those that the system gives to clients: one of these, trying to connect while nobody
    listens yet, could get the port itself, and so be connected with itself."""
    lowest_given = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    chance = random.Random(os.urandom(8))  # not the seed of a test: others run beside it
    for _ in range(1000):
        port = chance.randrange(10_000, lowest_given)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")
