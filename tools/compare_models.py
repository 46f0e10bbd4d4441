"""Repeats the first steps of the sample programs in PyTorch: same weights, same batches, losses side by side.

Each examples/NAME/NAME.py is the program in PyTorch and Lightning. The C++ program writes the weights before training and
the batches and losses of 20 steps (--record); the Python program trains from these instead of its own.
"""
import argparse
import datetime
import importlib.util
import logging
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

import lightning as L
import torch
from compare import BIN, ROOT, machine
from safetensors.torch import load_file
from torch.utils.data import DataLoader

STEPS = 20
VARIANTS = {"resnet18": ("resnet", ["--model", "resnet18"])}  # rows besides the programs with their defaults
# Largest relative difference of a loss over 20 steps. Where float32's rounding grows faster than that, as with batch
# normalization at high rates, Levin's losses have to be as near to those of float64 as PyTorch's, or as PyTorch's from
# weights whose last bits differ.
TOLERANCES = {"64-true": 1e-8, "32-true": 1e-4}
PERTURBED_RUNS = 4


class Stop(Exception):
    """Ends the Python program after the compared steps."""


def code_lines(text, comment):
    """Counts lines of code: no blank lines, comments, includes, imports, docstrings and lines of closing brackets."""
    text = re.sub(r'""".*?"""', "", text, flags=re.S)
    skipped = re.compile(rf"\s*({comment}|#include|#pragma|import |from |using namespace|namespace \{{|[)}}\];, ]*$)")
    return sum(1 for line in text.splitlines() if not skipped.match(line))


def ours(name, options, precision, threads, folder):
    command = [BIN / name, *options, "--record", folder, "--precision", precision,
               "--limit-val-batches", 0, "--limit-test-batches", 0, "--logger", "none", "--enable-checkpointing", "false",
               "--enable-progress-bar", "false", "--enable-model-summary", "false",
               "--default-root-dir", folder / "run"]
    environment = {**os.environ, "LEVIN_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True, cwd=ROOT, env=environment)
    if not (folder / "steps.safetensors").exists():
        sys.exit(f"error: {name} ended with {result.returncode}:\n{result.stdout[-2000:]}{result.stderr[-2000:]}")
    recorded = load_file(folder / "steps.safetensors")
    losses, ends = recorded["losses"].tolist(), recorded["ends"].tolist()
    batches = []
    for step in range(len(losses)):
        parts = [recorded[f"{step}/{i}"] for i in range(len(recorded)) if f"{step}/{i}" in recorded]
        batches.append(parts)
    return losses, ends, batches, int(recorded["schedule"])


class Steps(L.Callback):
    def __init__(self):
        self.losses, self.ends = [], []

    def on_train_batch_end(self, trainer, module, outputs, batch, index):
        self.losses.append(float(outputs["loss"] if isinstance(outputs, dict) else outputs))
        self.ends.append(time.perf_counter())


def theirs(name, options, precision, threads, weights, batches, schedule):
    torch.set_num_threads(threads)
    steps = Steps()

    class RecordedTrainer(L.Trainer):
        def __init__(self, **options):
            kept = {k: v for k, v in options.items() if k in ("gradient_clip_val", "accumulate_grad_batches")}
            super().__init__(**kept, accelerator="cpu", precision=precision, max_epochs=-1, max_steps=STEPS, logger=False,
                             enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
                             limit_val_batches=0, num_sanity_val_steps=0, callbacks=[steps])

        @property
        def estimated_stepping_batches(self):
            return schedule

        def fit(self, module, *data, **options):
            module.load_state_dict(weights)
            super().fit(module, DataLoader(batches, batch_size=None))
            raise Stop

    path = ROOT / "examples" / name / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"levin_peer_{name}", path)
    program = importlib.util.module_from_spec(spec)
    trainer, L.Trainer, sys.argv = L.Trainer, RecordedTrainer, [str(path), *options]
    try:
        spec.loader.exec_module(program)
        program.main()
    except Stop:
        pass
    finally:
        L.Trainer = trainer
    return steps.losses, steps.ends


def step_ms(ends):
    return 1000 * statistics.median(b - a for a, b in zip(ends[4:], ends[5:]))


def distance(losses, others):
    return max(abs(a - b) / abs(b) for a, b in zip(losses, others))


def perturbed(weights, seed):
    """Returns the weights with each float changed by at most its last bit."""
    random = torch.Generator().manual_seed(seed)

    def change(w):
        return w * (1 + torch.randint(-1, 2, w.shape, generator=random) * 2.0**-24) if w.is_floating_point() else w

    return {name: change(w) for name, w in weights.items()}


def compare(name, threads):
    """Returns the row of a program: largest differences, milliseconds a step in float32, lines of code."""
    row = {"name": name}
    name, options = VARIANTS.get(name, (name, []))
    for precision in TOLERANCES:
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            losses, ends, batches, schedule = ours(name, options, precision, threads, folder)
            weights = load_file(folder / "weights.safetensors")
            peer_losses, peer_ends = theirs(name, options, precision, threads, weights, batches, schedule)
        if len(losses) != STEPS or len(peer_losses) != STEPS:
            sys.exit(f"error: {name}: {len(losses)} and {len(peer_losses)} steps instead of {STEPS}")
        row[precision] = distance(losses, peer_losses)
        exact = losses if precision == "64-true" else exact

        def distances_of_peer():
            yield distance(peer_losses, exact)
            for seed in range(PERTURBED_RUNS):
                changed = theirs(name, options, precision, threads, perturbed(weights, seed), batches, schedule)[0]
                yield distance(changed, exact)

        if not row[precision] <= TOLERANCES[precision] and not (
                precision == "32-true" and any(distance(losses, exact) <= d for d in distances_of_peer())):
            sys.exit(f"error: {row['name']} in {precision}: losses {losses} differ from PyTorch's {peer_losses}")
        row["levin_ms"], row["peer_ms"] = step_ms(ends), step_ms(peer_ends)
    folder = ROOT / "examples" / name
    row["levin_lines"] = sum(code_lines(p.read_text(), "//") for p in [*folder.glob("*.h"), *folder.glob("*.cpp")])
    row["peer_lines"] = code_lines((folder / f"{name}.py").read_text(), "#")
    return row


def table(rows, threads):
    lines = [f"{datetime.date.today()}, {machine()}; {threads} threads, PyTorch {torch.__version__}.", "",
             "| program | difference of 20 losses, float64 | float32 | ms a step | PyTorch | ratio | lines | Python |",
             "|---|---|---|---|---|---|---|---|"]
    for r in rows:
        lines.append(f"| {r['name']} | {r['64-true']:.0e} | {r['32-true']:.0e} | {r['levin_ms']:.1f} | {r['peer_ms']:.1f} | "
                     f"{r['peer_ms'] / r['levin_ms']:.2f} | {r['levin_lines']} | {r['peer_lines']} |")
    return "\n".join(lines) + "\n"


def main():
    names = sorted([*(p.stem for p in ROOT.glob("examples/*/*.py") if p.stem == p.parent.name), *VARIANTS])
    line = argparse.ArgumentParser(prog="run compare models", description=__doc__.splitlines()[0])
    line.add_argument("names", nargs="*", help=f"programs to compare, of {', '.join(names)}; all by default")
    line.add_argument("--threads", type=int, default=2)
    line.add_argument("--update", action="store_true", help="write the table into docs/models.md")
    args = line.parse_args()
    unknown = [n for n in args.names if n not in names]
    if unknown:
        line.error(f"{unknown[0]} is no program with a PyTorch version; there are {', '.join(names)}")
    warnings.filterwarnings("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    text = table([compare(name, args.threads) for name in args.names or names], args.threads)
    print(text)
    if args.update:
        page = ROOT / "docs/models.md"
        begin, end = "<!-- compare models: begin -->\n", "<!-- compare models: end -->"
        before, rest = page.read_text().split(begin)
        page.write_text(before + begin + text + rest[rest.index(end):])


if __name__ == "__main__":
    main()
