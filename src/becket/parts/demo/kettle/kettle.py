"""A kettle that tells when water boils. Serves on $PORT."""

import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from temperature import boiling_point, fahrenheit


class Kettle(BaseHTTPRequestHandler):
    def do_GET(self):
        metres = int(self.path.rpartition("=")[2] or 0) if "metres=" in self.path else 0
        celsius = boiling_point(metres)
        said = {"celsius": celsius, "fahrenheit": fahrenheit(celsius), "commit": commit()}
        body = json.dumps({"ok": True} if self.path == "/health" else said).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def commit():
    return Path(".git/HEAD").read_text().strip()


if __name__ == "__main__":
    print("the kettle is on", flush=True)
    ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Kettle).serve_forever()
