"""Prints random comments of every module, to be read by somebody who has not written them.

usage: tools/comments.py [--seed S] [--count N] [MODULE...]
"""

import argparse
import pathlib
import random
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODULES = ["emulator", "core", "kernels", "autograd", "nn", "optim", "data", "interop", "distributed", "trainer",
           "c_api", "examples", "tests", "bench"]


def comments(module):
    """Blocks of `//` lines, each with its place."""
    found = []
    for path in sorted((ROOT / module).rglob("*")):
        if path.suffix not in (".h", ".cpp", ".cu", ".cuh", ".inc"):
            continue
        block, start = [], 0
        for number, line in enumerate(path.read_text().splitlines() + [""], 1):
            text = re.match(r"\s*///?(?!/) ?(.*)", line)
            if text:
                start = start or number
                block.append(text[1])
            elif block:
                found.append((f"{path.relative_to(ROOT)}:{start}", " ".join(block)))
                block, start = [], 0
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="*", default=MODULES)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    for module in options.modules:
        print(f"## {module}")
        found = comments(module)
        for place, text in draw.sample(found, min(options.count, len(found))):
            print(f"{place}  {text}")


main()
