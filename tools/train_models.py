"""Trains sample programs to their end and checks their results.

./run test --full calls this. docs/models.md shows how long each program takes.
"""
import argparse
import datetime
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from compare import ROOT, machine

# (program, options): (key of the result, lowest value, highest value, most seconds or None)
GOALS = {
    ("gpt", ""): ("val_loss", 0.5, 1.75, 120),
    ("lstm", ""): ("nrmse", 0, 0.05, None),
    ("lstm", "--task language --points 400000 --max-epochs 4"): ("val_loss", 0.5, 1.7, None),
    ("translate", ""): ("exact", 0.99, 1, None),
    ("vae", ""): ("test_loss", 200, 248, None),
    ("recommender", ""): ("auc", 0.93, 1, None),
    ("graph", ""): ("accuracy", 0.95, 1, None),
    ("resnet", ""): ("test_accuracy", 0.92, 1, 900),
    ("vit", ""): ("test_accuracy", 0.9, 1, None),
    ("ddpm", ""): ("val_loss", 0.01, 0.06, None),
    ("detect", ""): ("map", 0.9, 1, 600),
    ("speech", ""): ("accuracy", 0.97, 1, None),
    ("dqn", ""): ("return", 475, 500, None),
}
BEGIN, END = "<!-- train models: begin -->\n", "<!-- train models: end -->"
HEAD = ["| program | result | goal | seconds | measured |", "|---|---|---|---|---|"]


def train(name, options):
    """Returns the line of results and the seconds that the program took."""
    subprocess.run(["./run", name, "--help"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)  # builds it
    with tempfile.TemporaryDirectory() as folder:
        command = ["./run", name, *options.split(), "--default-root-dir", folder, "--enable-progress-bar", "false"]
        begin = time.monotonic()
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        seconds = time.monotonic() - begin
    results = re.findall(r"^result: (.*)", run.stdout, re.M)
    if run.returncode != 0 or len(results) != 1:
        sys.exit(f"error: {' '.join(command)} ended with {run.returncode}:\n{(run.stdout + run.stderr)[-2000:]}")
    return results[0], seconds


def misses(name, result, seconds, goal):
    """Returns why the goal is missed, or an empty string."""
    key, least, most, limit = goal
    value = float(dict(re.findall(r"(\S+)=(\S+)", result)).get(key, "nan"))
    if not least <= value <= most:
        return f"{name}: {key} is {value} instead of {least} to {most}"
    return f"{name} took {seconds:.0f} s instead of {limit}" if limit and seconds > limit else ""


def text_of(goal):
    key, least, most, limit = goal
    bound = f"≥ {least}" if key not in ("val_loss", "test_loss", "nrmse") else f"≤ {most}"
    return f"{key} {bound}" + (f" in {limit} s" if limit else "")


def update(rows):
    """Replaces the rows of the trained programs in docs/models.md and keeps the others."""
    page = ROOT / "docs/models.md"
    before, rest = page.read_text().split(BEGIN)
    old, after = rest.split(END)
    kept = {line.split("|")[1].strip(): line for line in old.splitlines()[len(HEAD):]}
    names = [" ".join(g).strip() for g in GOALS]
    kept.update(rows)
    lines = HEAD + [kept[name] for name in names if name in kept]
    page.write_text(before + BEGIN + "\n".join(lines) + "\n" + END + after)


def main():
    line = argparse.ArgumentParser(prog="train_models.py", description=__doc__.splitlines()[0])
    line.add_argument("names", nargs="*", help="programs, all by default")
    line.add_argument("--update", action="store_true", help="write the results into docs/models.md")
    args = line.parse_args()
    unknown = set(args.names) - {name for name, _ in GOALS}
    if unknown:
        line.error(f"{unknown.pop()} has no goal; there are {', '.join(dict.fromkeys(n for n, _ in GOALS))}")
    missed = []
    for (name, options), goal in GOALS.items():
        if args.names and name not in args.names:
            continue
        result, seconds = train(name, options)
        whole = f"{name} {options}".strip()
        print(f"{whole}: {result} ({seconds:.0f} s)", flush=True)
        if why := misses(whole, result, seconds, goal):
            missed.append(why)
        if args.update:
            update({whole: f"| {whole} | {result} | {text_of(goal)} | {seconds:.0f} | {datetime.date.today()}, {machine()} |"})
    if missed:
        sys.exit("error: " + "; ".join(missed))


if __name__ == "__main__":
    main()
