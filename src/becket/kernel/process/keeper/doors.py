"""Listening sockets, made in the network the child will have and handed to Becket, who answers there."""

import _socket
import sys

DOORS = b"^"
"""Sent with the descriptors, before all else. A report begins otherwise."""
_WAITING = 64


def hand_over(control: int, places: list[tuple[str, int]]) -> str:
    """Listen at every place and give the sockets away; what went wrong, if anything."""
    made = []
    for host, port in places:
        try:
            made.append(_listen(host, port))
        except OSError as error:
            return f"cannot listen at {host} port {port} inside the sandbox: {error.strerror}"
    packed = b"".join(door.fileno().to_bytes(4, sys.byteorder) for door in made)
    channel = _socket.socket(fileno=control)
    try:
        channel.sendmsg([DOORS], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, packed)])
    finally:
        channel.detach()
        for door in made:
            door.close()
    return ""


def _listen(host: str, port: int) -> _socket.socket:
    door = _socket.socket(_socket.AF_INET6 if ":" in host else _socket.AF_INET, _socket.SOCK_STREAM)
    door.bind((host, port))
    door.listen(_WAITING)
    return door
