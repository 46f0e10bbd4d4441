#!/usr/bin/env python3
"""Follows the gdb session of docs/tour/5_cuda.md: types its commands and compares what gdb prints.

python3 tools/gdb_session.py            fails if gdb prints other values or lines of source than the page shows
python3 tools/gdb_session.py --update   writes those that gdb printed into the page

Addresses may differ. Needs gdb and build/release/bin/levin_film.
"""
import argparse
import pathlib
import re
import subprocess
import sys

from page_snippets import blocks

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/tour/5_cuda.md"
PROMPT = "(gdb) "
SHOWN = re.compile(r"\$\d+ = |\d+\t")     # a value, or a line of source; the rest of gdb's output is not on the page
CUT = "--levin-command--"


def mask(line):
    return re.sub(r"0x[0-9a-f]+", "0x..", line).strip()


def session(commands, program):
    """Returns, for each command, the lines that gdb printed."""
    typed = []
    for command in commands:
        typed += [f"echo {CUT}\\n", command]
    options = [f"--eval-command={c}" for c in ("set confirm off", "set pagination off", "set width 0", *typed, "kill")]
    gdb = program.replace("gdb --args", "gdb --batch --nx " + " ".join(f"'{o}'" for o in options) + " --args")
    result = subprocess.run(gdb, shell=True, cwd=ROOT, capture_output=True, text=True, errors="replace", timeout=300)
    parts = result.stdout.split(CUT + "\n")[1:]
    if len(parts) != len(commands):
        sys.exit(f"error: gdb ended after {len(parts)} of {len(commands)} commands:\n{result.stdout}{result.stderr}")
    return [part.splitlines() for part in parts]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true", help="write gdb's output into the page")
    arguments = parser.parse_args()
    lines = PAGE.read_text().splitlines()
    program, commands, shown = None, [], []       # shown: for each command, the indices of the page's lines below it
    for _, start, block in blocks(PAGE):
        for i, line in enumerate(block, start - 1):
            if line.startswith(PROMPT):
                commands.append(line[len(PROMPT):])
                shown.append([])
            elif line.startswith("gdb --args "):
                program = line
            elif block[0].startswith((PROMPT, "gdb --args ")):
                shown[-1].append(i)
    if not program or not commands:
        sys.exit(f"error: {PAGE.name} shows no session of gdb")
    printed = session(commands, program)
    wrong = 0
    for command, indices, output in zip(commands, shown, printed):
        output = [line for line in output if SHOWN.match(line)]
        if len(output) != len(indices):
            sys.exit(f"error: `{command}` prints {len(output)} lines, the page shows {len(indices)}: {output}")
        for i, line in zip(indices, output):
            if mask(line) == mask(lines[i]):
                continue
            wrong += 1
            if arguments.update:
                lines[i] = line
            else:
                print(f"{PAGE.name}:{i + 1}: the page shows\n  {lines[i]}\nafter `{command}`, gdb printed\n  {line}")
    if arguments.update:
        PAGE.write_text("\n".join(lines) + "\n")
    elif wrong:
        sys.exit(f"error: {wrong} lines differ; --update rewrites them")
    print(f"{len(commands)} commands, {sum(map(len, shown))} lines as gdb printed them")


if __name__ == "__main__":
    main()
