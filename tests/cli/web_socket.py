"""The client's side of a WebSocket (RFC 6455) to this machine, as far as a browser's remote protocol needs it: texts both ways.

SPDX-License-Identifier: MIT
"""
import base64
import os
import socket
import struct
import time

CONTINUED, TEXT, CLOSE, PING, PONG = 0, 1, 8, 9, 10


class WebSocket:
    def __init__(self, host, port, path, seconds=60):
        self.socket = socket.create_connection((host, port), timeout=seconds)
        self.buffer = b""
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                             f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n").encode())
        end = time.monotonic() + seconds
        while b"\r\n\r\n" not in self.buffer:
            self.fill(end)
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        assert head.startswith(b"HTTP/1.1 101"), f"no WebSocket at {path}: {head.decode(errors='replace')}"

    def close(self):
        self.socket.close()

    def fill(self, end):
        self.socket.settimeout(max(0.001, end - time.monotonic()))
        chunk = self.socket.recv(1 << 20)
        if not chunk:
            raise ConnectionError("the browser closed the connection")
        self.buffer += chunk

    def take(self, count, end):
        while len(self.buffer) < count:
            self.fill(end)
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def send_frame(self, kind, content):
        """A client's frames are masked; Firefox takes a mask of zeros for none."""
        size, mask = len(content), os.urandom(3) + b"\1"
        masked = bytes(byte ^ mask[k & 3] for k, byte in enumerate(content))
        length = bytes([128 | size]) if size < 126 else struct.pack(">BH", 128 | 126, size) if size < 65536 else struct.pack(">BQ", 128 | 127, size)
        self.socket.sendall(bytes([128 | kind]) + length + mask + masked)

    def send(self, text):
        self.send_frame(TEXT, text.encode())

    def receive(self, seconds):
        """The next whole text; TimeoutError after so many seconds without one."""
        end, parts = time.monotonic() + seconds, []
        while True:
            first, second = self.take(2, end)
            size = second & 127
            if size > 125:
                size = int.from_bytes(self.take(2 if size == 126 else 8, end), "big")
            content, kind = self.take(size, end), first & 15
            if kind == PING:
                self.send_frame(PONG, content)
            elif kind == CLOSE:
                raise ConnectionError("the browser closed the connection")
            elif kind in (TEXT, CONTINUED):
                parts.append(content)
                if first & 128:
                    return b"".join(parts).decode()
