"""Prints this machine's address for containers on Docker's own network.

On Linux that is the address of the bridge docker0: --add-host host.docker.internal:host-gateway
sets host.docker.internal to it. Before Docker's first run the bridge does not exist, and the
address is Docker's default. On other systems containers reach servers on the loopback address, and
nothing is printed.
"""

import platform
import socket
import struct

SIOCGIFADDR = 0x8915
OTHERWISE = "172.17.0.1"


def address(interface):
    import fcntl  # Windows lacks it

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("256s", interface.encode())
        answer = fcntl.ioctl(any_socket.fileno(), SIOCGIFADDR, request)
    return socket.inet_ntoa(answer[20:24])


if platform.system() == "Linux":
    try:
        print(address("docker0"))
    except OSError:
        print(OTHERWISE)
