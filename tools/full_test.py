#!/usr/bin/env python3
"""./run test --full [--part PART]... [--again] [--update] [FILTER...]: runs all that docs/testing.md lists, in parts.

It takes many hours on two cores, so each part's result is kept in build/full_test.json, and a part that passed on the
same tree is not repeated unless --again is given: a run that was interrupted continues. --update writes the last result
of every part into docs/testing.md. With a FILTER only the test programs whose names contain it are run, in the parts
that are presets, and nothing is kept.
"""
import argparse
import datetime
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "build/full_test.json"
PAGE = ROOT / "docs/testing.md"
START, END = "<!-- full_test: start -->", "<!-- full_test: end -->"

PRESETS = ("release", "debug", "tsan", "clang", "emulate-asan", "emulate-msan", "emulate-tsan", "cuda", "aarch64")
# Other parts: what the table calls them, and their command, which passed if it ends with status 0.
COMMANDS = {
    "headers": ("every public header compiles alone",
                "bash -c '. tools/lib.sh; need $packages_build $packages_test; "
                "build release all_verify_interface_header_sets'"),
    "programs": ("sample programs, to the end of their training", "python3 tools/train_models.py"),
    "site": ("the site, with every link, and a comment on every public symbol", "bash tools/verbs/docs.sh"),
    "install": ("docs/install.md, followed in a fresh Debian root", "bash tools/fresh_install.sh"),
    "mutants": ("every mutant", "bash tools/verbs/mutants.sh"),
}
PARTS = (*PRESETS, *COMMANDS)


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True).stdout.strip()


def tree():
    """Returns a hash of the files that are tested, without those in which results are kept; None if some of them
    changed since the commit."""
    kept = ("docs/testing.md", "tools/mutants/caught.tsv")
    if git("status", "--porcelain", "--", ".", *(f":!{path}" for path in kept)):
        return None
    files = [line for line in git("ls-tree", "-r", "HEAD").splitlines() if line.split("\t")[1] not in kept]
    return hashlib.sha256("\n".join(files).encode()).hexdigest()


def skip_reason(part):
    path = f"{os.environ['PATH']}:{os.environ.get('CUDA_HOME', '/usr/local/cuda')}/bin"
    if part == "cuda" and not shutil.which("nvcc", path=path):
        return next(line.split(": ", 1)[1] for line in (ROOT / "tests/skips.txt").read_text().splitlines()
                    if line.startswith("nvcc: "))
    return None


def run(command):
    """Runs a command whose output is shown as it comes; returns its status and its last line."""
    process = subprocess.Popen(command, shell=True, cwd=ROOT, stdout=subprocess.PIPE, text=True, errors="replace",
                               env=dict(os.environ, LEVIN_FULL="1", LEVIN_PART="1"))
    last = ""
    for line in process.stdout:
        sys.stdout.write(line)
        sys.stdout.flush()
        last = line.strip()
    return process.wait(), last


def run_part(part, filters):
    """Runs one part; returns its counts of passed and failed tests and its closing line."""
    if part in PRESETS:
        status, last = run(f"bash tools/verbs/test.sh --preset {part} {' '.join(filters)}")
        closing = re.fullmatch(r"(\d+) passed, (\d+) failed", last)
        if closing:
            return int(closing[1]), int(closing[2]), last
        return 0, 1, f"ended with status {status}"
    status, last = run(COMMANDS[part][1])
    return (1, 0, last or "passed") if status == 0 else (0, 1, last or f"ended with status {status}")


def load():
    return json.loads(RESULTS.read_text()) if RESULTS.is_file() else {}


def keep(part, result):
    results = load()
    results[part] = result
    RESULTS.parent.mkdir(exist_ok=True)
    temporary = RESULTS.with_suffix(".tmp")
    temporary.write_text(json.dumps(results, indent=1) + "\n")
    temporary.replace(RESULTS)


def update_page():
    page = PAGE.read_text()
    before, rest = page.split(START)
    old, after = rest.split(END)
    rows = dict(re.findall(r"^\| `([^`]+)`.*? (\|.*)$", old, re.MULTILINE))
    results = load()
    for part in PARTS:
        r = results.get(part)
        if r:
            minutes = r["seconds"] / 60
            rows[part] = f"| {r['date']} | {r['commit']} | {r['closing']} | {minutes:.0f} |"
        else:
            rows.setdefault(part, "| - | - | not yet run | - |")
    lines = [f"| `{part}`{': ' + COMMANDS[part][0] if part in COMMANDS else ''} {rows[part]}" for part in PARTS]
    PAGE.write_text(f"{before}{START}\n| part | date | commit | result | minutes |\n|---|---|---|---|---:|\n" +
                    "\n".join(lines) + f"\n{END}{after}")


def main():
    parser = argparse.ArgumentParser(prog="./run test --full", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--part", action="append", choices=PARTS, help="only this part; may be repeated")
    parser.add_argument("--again", action="store_true", help="also run parts that passed on this tree")
    parser.add_argument("--update", action="store_true", help="write the results into docs/testing.md")
    parser.add_argument("filters", nargs="*", metavar="FILTER", help="only test programs whose names contain it")
    arguments = parser.parse_args()
    passed = failed = 0
    for part in arguments.part or (PRESETS if arguments.filters else PARTS):
        known = load().get(part, {})
        done = known and known["failed"] == 0 and known["tree"] and known["tree"] == tree()
        if done and not arguments.filters and not arguments.again:
            print(f"==> {part}: {known['closing']} on this tree, {known['date']}", flush=True)
            passed += known["passed"]
            continue
        reason = skip_reason(part)
        if reason:
            print(f"==> {part} skipped: {reason}", flush=True)
            continue
        print(f"==> {part}", flush=True)
        start, tested = time.monotonic(), tree()
        commit = git("rev-parse", "--short", "HEAD") + ("" if tested else " and changes")
        ok, bad, closing = run_part(part, arguments.filters)
        passed, failed = passed + ok, failed + bad
        if not arguments.filters:
            keep(part, {"date": str(datetime.date.today()), "commit": commit, "tree": tested, "passed": ok,
                        "failed": bad, "closing": closing, "seconds": round(time.monotonic() - start)})
            if arguments.update:
                update_page()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
