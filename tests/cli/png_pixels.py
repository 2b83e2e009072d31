"""PNG files with nothing but Python's own library: pixels, text chunks, resolution. SPDX-License-Identifier: MIT"""
import struct
import zlib


class Picture:
    """width, height, texts {key: value}, dots_per_metre, and pixel(x, y) as (r, g, b). 8-bit RGB or palette without interlacing, which
    is what this program writes; anything else is refused."""

    def __init__(self, data):
        assert data[:8] == b"\x89PNG\r\n\x1a\n", "no PNG"
        at, packed, self.texts, self.dots_per_metre, self.palette = 8, b"", {}, None, None
        while at < len(data):
            length, kind = struct.unpack(">I4s", data[at:at + 8])
            body = data[at + 8:at + 8 + length]
            assert zlib.crc32(kind + body) == struct.unpack(">I", data[at + 8 + length:at + 12 + length])[0], f"{kind} is damaged"
            if kind == b"IHDR":
                self.width, self.height, depth, colour, _, _, interlace = struct.unpack(">IIBBBBB", body)
                assert depth == 8 and colour in (2, 3) and not interlace, f"depth {depth}, colour type {colour}, interlace {interlace}"
                self.bytes_each = 3 if colour == 2 else 1
            elif kind == b"PLTE":
                self.palette = [tuple(body[k:k + 3]) for k in range(0, len(body), 3)]
            elif kind == b"IDAT":
                packed += body
            elif kind == b"pHYs":
                self.dots_per_metre = struct.unpack(">II", body[:8])
            elif kind == b"tEXt":
                key, _, value = body.partition(b"\0")
                self.texts[key.decode("latin-1")] = value.decode("latin-1")
            elif kind == b"iTXt":
                key, rest = body.split(b"\0", 1)
                compressed, rest = rest[0], rest[2:]
                value = rest.split(b"\0", 2)[2]
                self.texts[key.decode("latin-1")] = (zlib.decompress(value) if compressed else value).decode("utf-8")
            at += 12 + length
        self.lines = self._unfilter(zlib.decompress(packed))

    def _unfilter(self, raw):
        step = self.bytes_each
        stride, lines, above = step * self.width, [], bytes(step * self.width)
        for y in range(self.height):
            kind, line = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
            if kind == 2:
                line = bytearray((a + b) & 255 for a, b in zip(line, above))
            elif kind:
                for x in range(stride):
                    left, up, corner = (line[x - step], above[x], above[x - step]) if x >= step else (0, above[x], 0)
                    line[x] = (line[x] + (left if kind == 1 else (left + up) // 2 if kind == 3 else paeth(left, up, corner))) & 255
            lines.append(bytes(line))
            above = lines[-1]
        return lines

    def pixel(self, x, y):
        value = self.lines[y][self.bytes_each * x:self.bytes_each * (x + 1)]
        return self.palette[value[0]] if self.palette else tuple(value)


def paeth(left, up, corner):
    guess = left + up - corner
    return min((left, up, corner), key=lambda value: abs(guess - value))
