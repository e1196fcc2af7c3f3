"""Ports for nodes that are started later."""

from __future__ import annotations

import socket
from pathlib import Path

from kraftlake.runtime.free_ports import free_ports

KERNELS = Path("/proc/sys/net/ipv4/ip_local_port_range")


def test_ports_differ_and_can_be_listened_at() -> None:
    ports = free_ports(40) + free_ports(40)
    assert len({*ports}) == 80
    for port in ports:
        socket.create_server(("127.0.0.1", port)).close()


def test_no_connection_of_a_client_gets_one_of_them() -> None:
    first = int(KERNELS.read_text().split()[0]) if KERNELS.exists() else 32_768
    assert max(free_ports(10)) < first


def test_a_taken_port_is_passed_over() -> None:
    (port,) = free_ports(1)
    with socket.create_server(("127.0.0.1", port + 1)):
        assert free_ports(1) != [port + 1]
