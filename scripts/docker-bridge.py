"""Prints the address by which containers on Docker's own network reach this machine.

On Linux that is the address of the bridge docker0: host.docker.internal is set to it by
--add-host host.docker.internal:host-gateway. Before Docker has run there is no bridge,
and the address is the one that Docker takes if nobody else has. Elsewhere containers
reach what serves on the loopback address, and nothing is printed.
"""

import platform
import socket
import struct

SIOCGIFADDR = 0x8915
OTHERWISE = "172.17.0.1"


def address(interface):
    import fcntl  # there is none on Windows

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("256s", interface.encode())
        answer = fcntl.ioctl(any_socket.fileno(), SIOCGIFADDR, request)
    return socket.inet_ntoa(answer[20:24])


if platform.system() == "Linux":
    try:
        print(address("docker0"))
    except OSError:
        print(OTHERWISE)
