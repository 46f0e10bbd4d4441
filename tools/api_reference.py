#!/usr/bin/env python3
"""Makes the API reference by Doxygen and checks that it documents every public symbol.

  tools/api_reference.py [--output FOLDER] [PATH...]    lists undocumented symbols, of files whose paths contain a PATH

A symbol is documented by a comment above or beside it, or above a group of declarations without empty lines between
them. A field also counts if the comment of its struct names it, a constructor if the comment of its class names its
parameters, and `forward` of a documented class. For a class that a macro defines, the comment above the macro's use is
the comment of the class. Overrides, inherited constructors, copies, moves, iterators, comparisons, `with_arguments`
(described by nn::Layer) and a class's `options` (those of the constructor) need no comment.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

import doxygen_groups

ROOT = pathlib.Path(__file__).resolve().parent.parent
WARNING = re.compile(r"(?P<file>[^:\n]+):(?P<line>\d+): warning: (?:Member (?P<member>.+) \((?P<kind>[^()]+)\) of .*?"
                     r"(?P<owner>[\w:<>, *&]+)|Compound (?P<compound>.+)) is not documented\.")
NAMESPACES = {
    "levin": "Tensors, differentiable operations on them, and the Trainer.",
    "levin::data": "Datasets, samplers, transforms, the DataLoader, and readers of file formats.",
    "levin::distributed": "Process groups, data-parallel and sharded training.",
    "levin::distributions": "Probability distributions, as torch.distributions.",
    "levin::fft": "Discrete Fourier transforms, as torch.fft.",
    "levin::interop": "Formats of other libraries.",
    "levin::io": "Atomic files and checked reads.",
    "levin::kernels": "The kernels' contracts: arguments and tables of the functions that compute on each device.",
    "levin::kernels::cpu": "The CPU's kernels.",
    "levin::kernels::linalg": "Factorizations of one matrix on the host.",
    "levin::linalg": "Linear algebra, as torch.linalg.",
    "levin::metrics": "Metrics that accumulate over batches and ranks.",
    "levin::nn": "Modules: layers, containers and losses, as torch.nn.",
    "levin::nn::init": "Initializers, as torch.nn.init.",
    "levin::optim": "Optimizers, schedulers and what belongs to a step, as torch.optim.",
}
STANDARD = re.compile(r"(begin|end|cbegin|cend|swap|with_arguments|"
                      r"operator(==|!=|\+\+|--|\*|->|\(\)|\[\]|bool|=))\s*\(")
MACRO = re.compile(r"LEVIN_\w+\((\w+)")


def comment_above(lines, index):
    """Returns the text of the comment that ends right above a line."""
    text = []
    index -= 1
    while index >= 0 and (lines[index].lstrip().startswith("//") or re.match(r"\s*template\s*<", lines[index])):
        text.insert(0, lines[index].strip().lstrip("/< "))
        index -= 1
    return " ".join(text)


def owner_of(lines, index):
    """Returns the index of the line that opens the class around a line: the nearest one above with less indentation."""
    if MACRO.match(lines[index]):
        return index
    depth = len(lines[index]) - len(lines[index].lstrip())
    for i in range(index - 1, -1, -1):
        if lines[i].strip() and len(lines[i]) - len(lines[i].lstrip()) < depth and \
                re.match(r"\s*(template\s*<.*>\s*)?(struct|class|union)\b", lines[i]):
            return i
    return None


def parameters(declaration):
    """Returns the names of a function's parameters."""
    inside = re.sub(r"<[^<>]*>", "", declaration[declaration.index("(") + 1:declaration.rindex(")")])
    inside = re.sub(r"<[^<>]*>", "", inside)
    names = []
    for part in re.sub(r"\{[^{}]*\}", "", inside).split(","):
        words = re.findall(r"\w+", part.split("=")[0])
        if len(words) > 1:
            names.append(words[-1].rstrip("_"))
    return names


def needs_comment(match, lines):
    index = int(match["line"]) - 1
    if match["compound"]:
        return True
    member, text = match["member"], lines[index]
    name = re.split(r"[\s(=]", member)[0]
    if "override" in text or "= delete" in text or name.startswith("~") or name.endswith("_"):
        return "override" not in text and name.endswith("_") and "(" in member
    if STANDARD.match(member) or re.match(r"operator ?bool", member) or re.match(r"\s*using (\w+)::\1;", text):
        return False
    if (match["kind"], name) in (("typedef", "Options"), ("variable", "options")):
        return False
    owner = owner_of(lines, index)
    if owner is None:
        return True
    about = comment_above(lines, owner)
    if match["kind"] == "variable":
        return not re.search(rf"\b{re.escape(name)}\b", about)
    if match["kind"] != "function":
        return True
    constructor = re.search(rf"(\b(struct|class)\s+|^LEVIN_\w+\(){re.escape(name)}\b", lines[owner])
    if constructor:
        names = parameters(member)
        if not names or re.match(rf"{re.escape(name)}\s*\((const )?{re.escape(name)}\b", member):
            return False  # the default, copy and move constructors
        words = set(re.findall(r"\w+", about))
        return not (about and all(n in words or n in ("options", "o", "params", "optimizer") for n in names))
    return not (about and name in ("forward",))


def run_doxygen(copies, output):
    """Runs Doxygen on copies of the headers, writes HTML to `output` if that is given, and returns the warnings."""
    settings = (ROOT / "tools/Doxyfile").read_text() + f"\nSTRIP_FROM_PATH = {copies}\n"
    if output:
        output.mkdir(parents=True, exist_ok=True)
        settings += f"OUTPUT_DIRECTORY = {output.absolute()}\nGENERATE_HTML = YES\n"
    else:
        settings += "GENERATE_HTML = NO\n"
    done = subprocess.run(["doxygen", "-"], input=settings, cwd=copies, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"error: doxygen failed:\n{done.stderr[-2000:]}")
    return done.stderr


def describe_namespaces(copies):
    """Documents the namespaces: Doxygen does not check the members of an undocumented one."""
    names = set()
    for header in copies.rglob("*.h"):
        for name in re.findall(r"^namespace ([\w:]+) \{", header.read_text(), re.MULTILINE):
            names.add(name if name.startswith("levin") else f"levin::{name}")
    if unknown := names - NAMESPACES.keys() - {"levin::detail", "levin::cpu_allocator"}:  # private; has a comment
        sys.exit(f"error: describe the namespace {min(unknown)} in NAMESPACES of tools/api_reference.py")
    text = [f"/// {about}\nnamespace {name} {{}}\n" for name, about in NAMESPACES.items()]
    (copies / "core/include/levin/core/namespaces.h").write_text("".join(text))


def undocumented(warnings, copies):
    """Returns pairs of a place, (path, line), and a name: the symbols that need a comment and have none."""
    found, files = set(), {}
    for line in warnings.splitlines():
        match = WARNING.fullmatch(line)
        if match:
            path = pathlib.Path(match["file"]).relative_to(copies)
            lines = files.setdefault(path, (ROOT / path).read_text().splitlines())
            if needs_comment(match, lines):
                name = match["compound"] or f"{match['owner']}: {match['member']}"
                found.add(((str(path), int(match["line"])), name))
        elif "is not documented" in line:
            sys.exit(f"error: a warning of Doxygen was not understood: {line}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, help="also write the reference, as HTML, to FOLDER/html")
    parser.add_argument("paths", nargs="*", metavar="PATH")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        copies = pathlib.Path(folder)
        for header in ROOT.glob("*/include/levin/**/*.h"):
            if header.relative_to(ROOT).parts[0] == "emulator":
                continue
            copy = copies / header.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text("\n".join(doxygen_groups.grouped(header.read_text().split("\n"))))
        describe_namespaces(copies)
        found = undocumented(run_doxygen(copies, arguments.output), copies)
    shown = [(f"{path}:{line}", name) for (path, line), name in sorted(found)]
    shown = [(place, name) for place, name in shown
             if not arguments.paths or any(part in place for part in arguments.paths)]
    for place, name in shown:
        print(f"{place}: {name} is not documented")
    print(f"{len(shown)} public symbols are not documented")
    return 1 if shown else 0


if __name__ == "__main__":
    sys.exit(main())
