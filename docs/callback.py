import base64
import hashlib
import hmac
import json
import os
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECRET = os.environ.get("COMMAND_CALLBACK_SECRET", "")
KEY = base64.b64decode(SECRET[6:]) if SECRET.startswith("whsec_") else SECRET.encode()


def answer(body):
    if body["command"] == "ping":
        return {"reply": "pong " + body["content"]}
    if body["command"] == "whoi":
        return {"messages": [{"type": "text", "msg": "You are " + body["user_id"]}]}
    return {}


def is_genuine(body, headers):
    timestamp = headers.get("webhook-timestamp", "")
    if not timestamp.isdecimal() or abs(time.time() - int(timestamp)) > 300:
        return False
    signed = f"{headers.get('webhook-id', '')}.{timestamp}.".encode() + body
    expected = b"v1," + base64.b64encode(hmac.new(KEY, signed, hashlib.sha256).digest())
    signatures = headers.get("webhook-signature", "").encode().split()
    return any(hmac.compare_digest(each, expected) for each in signatures)


class Callback(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            status, result = 401, {}
            if not SECRET or is_genuine(body, self.headers):
                status, result = 200, answer(json.loads(body))
        except (ValueError, KeyError, TypeError):
            status, result = 400, {}
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(result).encode())


ThreadingHTTPServer(("127.0.0.1", 3000), Callback).serve_forever()
