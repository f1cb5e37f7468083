"""Runs inside the sandbox, as text: starts a service on a free port, asks until it answers, says how it went."""

from __future__ import annotations

SOURCE = r"""
import os, socket, subprocess, sys, time

start, url, within = sys.argv[1], sys.argv[2], float(sys.argv[3])
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
os.environ["PORT"] = str(port)
child = subprocess.Popen(["sh", "-c", start.replace("{port}", str(port))])
until, why = time.monotonic() + within, "nobody listened"


def status():
    with socket.create_connection(("127.0.0.1", port), timeout=2) as line:
        line.sendall(f"GET {url} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
        words = line.makefile("rb").readline(4096).split()
    if len(words) < 2 or not words[0].startswith(b"HTTP/"):
        raise ValueError("the answer is not HTTP")
    return words[1].decode()


while time.monotonic() < until:
    code = child.poll()
    try:
        found = status()
        if found.startswith("2"):
            print(f"becket: GET {url} on port {port} answered {found}", flush=True)
            os._exit(0)
        why = f"GET {url} answered {found}"
    except (OSError, ValueError) as error:
        why = f"GET {url}: {error}"
    if code:
        why = f"it ended with exit code {code}"
        break
    time.sleep(0.05)
print(f"becket: no good answer on the free port {port}: {why}.", flush=True)
print("becket: does `start` take its port from $PORT or {port}?", flush=True)
os._exit(1)
"""
