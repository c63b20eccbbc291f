"""Runs on a host by its own Python (3.6 or newer): listens for peers, or exchanges data with them.

`exchange.py JSON`: {"listen": [ADDRESS, INTERFACE], "seconds": N} prints its port and answers until its
standard input ends; {"talk": [ADDRESS, INTERFACE], "peers": [[NAME, ADDRESS, PORT], ...]} prints what came of
each. Standard library only; nothing is written anywhere.
"""

import json
import os
import socket
import sys
import threading
import time
from typing import Any, Dict

# More than the buffers of a socket hold, so that both sides have to move data in full packets.
SIZE = 1 << 22
SECONDS = 8.0


def bound(address: str, interface: str) -> socket.socket:
    """A socket that leaves by this address and, where we may say so, by this interface alone."""
    made = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    try:
        made.setsockopt(socket.SOL_SOCKET, 25, interface.encode() + b"\0")  # SO_BINDTODEVICE, socket(7)
    except PermissionError:
        pass
    made.bind((address, 0))
    return made


def whole(connection: socket.socket) -> bytes:
    """SIZE bytes of the other side, or fewer where it ended before."""
    data = bytearray()
    while len(data) < SIZE:
        part = connection.recv(min(1 << 16, SIZE - len(data)))
        if not part:
            break
        data += part
    return bytes(data)


def answer(connection: socket.socket) -> None:
    with connection:
        connection.settimeout(SECONDS)
        try:
            connection.sendall(whole(connection))
        except OSError:
            pass  # the one who talks tells what went wrong


def serve(server: socket.socket) -> None:
    while True:
        connection, _ = server.accept()
        threading.Thread(target=answer, args=(connection,), daemon=True).start()


def listen(address: str, interface: str, seconds: float) -> None:
    server = bound(address, interface)
    server.listen(64)
    print(server.getsockname()[1], flush=True)
    threading.Thread(target=serve, args=(server,), daemon=True).start()
    # A controller that goes away closes our input; the time is for one that hangs.
    end = threading.Timer(seconds, os._exit, [0])
    end.daemon = True
    end.start()
    sys.stdin.read()


def talk(address: str, interface: str, name: str, to: str, port: int) -> "Dict[str, Any]":
    began, sent = time.time(), os.urandom(1 << 16) * (SIZE >> 16)
    try:
        with bound(address, interface) as connection:
            connection.settimeout(SECONDS)
            connection.connect((to, port))
            connection.sendall(sent)
            wrong = None if whole(connection) == sent else "what came back is not what was sent"
    except OSError as e:
        wrong = "no answer within %g s" % SECONDS if isinstance(e, socket.timeout) else e.strerror or str(e)
    return {"peer": name, "wrong": wrong, "seconds": round(time.time() - began, 3)}


def main(asked: "Dict[str, Any]") -> None:
    if "listen" in asked:
        address, interface = asked["listen"]
        listen(address, interface, asked["seconds"])
    else:
        print(json.dumps([talk(*asked["talk"], *peer) for peer in asked["peers"]]))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
