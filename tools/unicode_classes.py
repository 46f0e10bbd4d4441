#!/usr/bin/env python3
"""Writes data/src/text/unicode_ranges.inc: the ranges of Unicode's letters and numbers, from Python's own table."""
import pathlib
import sys
import unicodedata


def ranges(category):
    found, start = [], None
    for code in range(sys.maxunicode + 2):
        inside = code <= sys.maxunicode and unicodedata.category(chr(code))[0] == category
        if inside and start is None:
            start = code
        if not inside and start is not None:
            found.append((start, code - 1))
            start = None
    return found


def rows(name, category):
    lines = [f"constexpr CodeRange {name}[] = {{"]
    line = "   "
    for first, last in ranges(category):
        item = f" {{0x{first:x}, 0x{last:x}}},"
        if len(line) + len(item) > 120:
            lines.append(line)
            line = "   "
        line += item
    return lines + [line, "};"]


def main():
    text = [f"// Unicode {unicodedata.unidata_version}, written by tools/unicode_classes.py."]
    text += rows("kLetterRanges", "L") + rows("kNumberRanges", "N")
    path = pathlib.Path(__file__).parent.parent / "data/src/text/unicode_ranges.inc"
    path.write_text("\n".join(text) + "\n")


main()
