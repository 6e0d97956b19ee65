"""Prints the address at which containers in Docker's default network can reach this machine.

On Linux this is the address of the bridge docker0: --add-host host.docker.internal:host-gateway uses it too. Before
Docker has run, the bridge does not exist, and the address is Docker's default. On other systems, containers can reach
servers on the loopback address, so nothing is printed.
"""

import platform
import socket
import struct

SIOCGIFADDR = 0x8915
OTHERWISE = "172.17.0.1"


def address(interface):
    import fcntl  # Windows does not have fcntl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("256s", interface.encode())
        answer = fcntl.ioctl(any_socket.fileno(), SIOCGIFADDR, request)
    return socket.inet_ntoa(answer[20:24])


if platform.system() == "Linux":
    try:
        print(address("docker0"))
    except OSError:
        print(OTHERWISE)
