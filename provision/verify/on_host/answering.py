"""Answers on ports, for as long as somebody asks. Runs on the host, under whatever Python 3 it has.

`python3 -c TEXT TOKEN SECONDS PROTO:PORT...` says on one line, as JSON, which ports could be had (null) and
why others could not. Whoever connects or sends anything is given the token. It ends with its standard input,
or after some seconds.
"""

import json
import os
import selectors
import signal
import socket
import sys
from typing import Dict, Optional


def bound(spec: str) -> socket.socket:
    """A socket that takes in both families; IPv4 alone where the host has no IPv6. Raises OSError."""
    proto, port = spec.split(":")
    kind = socket.SOCK_STREAM if proto == "tcp" else socket.SOCK_DGRAM
    try:
        probe = socket.socket(socket.AF_INET6, kind)
        probe.bind(("::1", 0))
        probe.close()
        family = socket.AF_INET6
    except OSError:
        family = socket.AF_INET
    found = socket.socket(family, kind)
    if family == socket.AF_INET6:
        found.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        if proto == "udp":
            # An answer has to come from the address that was asked.
            found.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
    if proto == "tcp":
        # No port is kept from a service that starts right afterwards.
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    found.bind(("", int(port)))
    if proto == "tcp":
        found.listen(8)
    found.setblocking(False)
    return found


def answer(asked: socket.socket, token: bytes) -> None:
    try:
        if asked.type & socket.SOCK_STREAM:
            caller = asked.accept()[0]
            caller.sendall(token)
            caller.close()
        else:
            _, told, _, caller = asked.recvmsg(100, socket.CMSG_SPACE(64))
            asked.sendmsg([token], told, 0, caller)
    except OSError:
        pass  # who asked is gone again


def main(token: str, seconds: str, *specs: str) -> None:
    signal.alarm(int(seconds))
    said: "Dict[str, Optional[str]]" = {}
    ready = selectors.DefaultSelector()
    for spec in specs:
        try:
            ready.register(bound(spec), selectors.EVENT_READ)
            said[spec] = None
        except OSError as e:
            said[spec] = e.strerror or str(e)
    print(json.dumps({"ports": said, "connection": os.environ.get("SSH_CONNECTION", "")}), flush=True)
    ready.register(sys.stdin, selectors.EVENT_READ)
    while True:
        for key, _ in ready.select():
            if not isinstance(key.fileobj, socket.socket):
                return
            answer(key.fileobj, token.encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
