"""A stub of neutron for servers without a network: every question is answered with an empty list."""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Neutron(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        name = self.path.split("?")[0].rstrip("/").rpartition("/")[2].removesuffix(".json")
        answer = json.dumps({name.replace("-", "_"): []}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Neutron).serve_forever()
