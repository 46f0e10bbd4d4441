#!/usr/bin/env python3
"""Writes the lists of classes and operations into docs/guides: tools/api_lists.py [--check].

`<!-- classes: FOLDER -->` is followed by a table of the public classes of FOLDER's headers, each with the first sentence
of its comment; `<!-- operations: FOLDER -->` by a table of the functions that each header of FOLDER declares. `<!-- end
of the list -->` ends either. --check changes nothing, and fails where a page is not current.
"""
import argparse
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIST = re.compile(r"<!-- (classes|operations): (\S+) -->\n(.*?)<!-- end of the list -->", re.DOTALL)
CLASS = re.compile(r"(?:class|struct) (\w+)(?: final)?(?: :.*)?(?: \{.*)?$"
                   r"|LEVIN_\w+\((\w+), .*\)$")  # a class that a macro defines
FUNCTION = re.compile(r"(?:inline )?[A-Za-z_][\w:<>, ]*[ &]([a-z_]\w*)\(")


def comment_above(lines, index):
    """Returns the first paragraph of the comment that ends above a line, or above its template line."""
    index -= 1
    while index >= 0 and lines[index].startswith(("template", "  requires", "requires")):
        index -= 1
    text = []
    while index >= 0 and lines[index].startswith("//"):
        text.insert(0, lines[index].lstrip("/ "))
        index -= 1
    return " ".join(text[:text.index("")] if "" in text else text)


def first_sentence(text):
    """Returns the first sentence, without its full stop."""
    match = re.match(r"(.+?[a-z0-9)`\"]\.)(?= [A-Z]|$)", text)
    return (match[1] if match else text).rstrip(":.").replace("|", r"\|")


def public_lines(header):
    """Returns the lines of a header, with those of namespace detail emptied."""
    lines, inside = header.read_text().splitlines(), False
    for i, line in enumerate(lines):
        inside = inside or line.startswith("namespace detail {")
        if inside:
            inside = not line.startswith("}  // namespace detail")
            lines[i] = ""
    return lines


def link(page, header, name):
    return f"[`{name}`]({os.path.relpath(header, page.parent)})"


def classes(page, folder):
    rows = ["| class | what it is |", "|---|---|"]
    for header in sorted((ROOT / folder).glob("*.h")):
        lines = public_lines(header)
        for i, line in enumerate(lines):
            match = CLASS.match(line)
            name = match and (match[1] or match[2])
            if not match or line.endswith(";") and "{" not in line or name.endswith("Options"):
                continue
            about = first_sentence(comment_above(lines, i))
            if about:
                rows.append(f"| {link(page, header, name)} | {about} |")
    return rows


def operations(page, folder):
    rows = ["| header | functions |", "|---|---|"]
    for header in sorted((ROOT / folder).glob("*.h")):
        names = []
        for line in public_lines(header):
            match = FUNCTION.match(line)
            if match and not line.startswith(("return", "using", "//", "template", "operator")) and match[1] not in names:
                names.append(match[1])
        if names:
            rows.append(f"| {link(page, header, header.stem)} | {', '.join(f'`{n}`' for n in names)} |")
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    lists, stale = 0, []
    for page in sorted((ROOT / "docs").rglob("*.md")):
        def table(match):
            nonlocal lists
            lists += 1
            rows = (classes if match[1] == "classes" else operations)(page, match[2])
            return f"<!-- {match[1]}: {match[2]} -->\n" + "\n".join(rows) + "\n<!-- end of the list -->"

        old = page.read_text()
        new = LIST.sub(table, old)
        if new != old and check:
            stale.append(str(page.relative_to(ROOT)))
        elif new != old:
            page.write_text(new)
    if stale:
        sys.exit(f"error: the lists of {', '.join(stale)} are not current; run tools/api_lists.py")
    print(f"{lists} lists are current")


if __name__ == "__main__":
    main()
