"""Compresses a browser's PNG file to at most 256 colours and one byte per pixel. Uses only the standard library."""
import collections
import struct
import zlib


def chunks(data):
    at = 8
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        yield kind, data[at + 8:at + 8 + size]
        at += 12 + size


def rows_of(raw, width, height, depth):
    """Returns the rows with PNG's filters undone; a pixel has `depth` bytes."""
    stride, before = width * depth, bytearray(width * depth)
    for y in range(height):
        start = y * (stride + 1)
        kind, row = raw[start], bytearray(raw[start + 1:start + 1 + stride])
        if kind == 1:
            for i in range(depth, stride):
                row[i] = (row[i] + row[i - depth]) & 255
        elif kind == 2:
            row = bytearray((a + b) & 255 for a, b in zip(row, before))
        elif kind:
            for i in range(stride):
                left, corner = (row[i - depth], before[i - depth]) if i >= depth else (0, 0)
                if kind == 3:
                    guess = (left + before[i]) // 2
                else:
                    p = left + before[i] - corner
                    guess = min((left, before[i], corner), key=lambda v: abs(p - v))
                row[i] = (row[i] + guess) & 255
        yield bytes(row)
        before = row


def palette_of(pixels):
    """Returns a palette of at most 256 frequent colours, and for every colour the index of the nearest one."""
    coarse = {}
    for color, count in collections.Counter(pixels).items():  # keeps the most frequent of similar colours
        coarse.setdefault(tuple(v >> 3 for v in color), collections.Counter())[color] += count
    best = sorted(coarse.values(), key=lambda c: -sum(c.values()))
    palette = [c.most_common(1)[0][0] for c in best[:256]]
    distance = lambda a, b: sum((x - y) ** 2 for x, y in zip(a, b))
    return palette, {color: min(range(len(palette)), key=lambda i: distance(palette[i], color))
                     for group in coarse.values() for color in group}


def shrink(path):
    """Rewrites the file. Pixels are RGB or RGBA without transparency, with 8 bits per channel."""
    parts = list(chunks(path.read_bytes()))
    width, height, bits, kind = struct.unpack(">IIBB", parts[0][1][:10])
    if bits != 8 or kind not in (2, 6):
        raise SystemExit(f"error: {path} has unsupported pixels ({bits} bits, type {kind})")
    depth = 3 if kind == 2 else 4
    raw = zlib.decompress(b"".join(body for name, body in parts if name == b"IDAT"))
    rows = [list(zip(*(row[c::depth] for c in range(3)))) for row in rows_of(raw, width, height, depth)]
    palette, place = palette_of(pixel for row in rows for pixel in row)
    packed = zlib.compress(b"".join(b"\0" + bytes(place[pixel] for pixel in row) for row in rows), 9)
    out = b"\x89PNG\r\n\x1a\n"
    for name, body in [(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
                       (b"PLTE", bytes(v for color in palette for v in color)), (b"IDAT", packed), (b"IEND", b"")]:
        out += struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
    path.write_bytes(out)
