#!/usr/bin/env python3
"""Writes data/src/text/unicode_runs.inc: the runs of Unicode's letters and numbers, from Python's own table."""
import pathlib
import sys
import unicodedata


def runs(category):
    """Returns the lengths of the runs of codes that are outside and inside of the category, in turn."""
    found, start, inside = [], 0, False
    for code in range(sys.maxunicode + 1):
        if (unicodedata.category(chr(code))[0] == category) != inside:
            found.append(code - start)
            start, inside = code, not inside
    assert not inside
    return found


def rows(name, category):
    lines = [f"constexpr std::uint16_t {name}[] = {{"]
    line = "   "
    for length in runs(category):
        item = f" {length},"
        if len(line) + len(item) > 120:
            lines.append(line)
            line = "   "
        line += item
    return lines + [line, "};"]


def main():
    text = [f"// Unicode {unicodedata.unidata_version}, written by tools/unicode_classes.py."]
    text += rows("kLetterRuns", "L") + rows("kNumberRuns", "N")
    path = pathlib.Path(__file__).parent.parent / "data/src/text/unicode_runs.inc"
    path.write_text("\n".join(text) + "\n")


main()
