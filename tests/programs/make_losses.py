#!/usr/bin/env python3
"""Runs the PyTorch programs of this folder and writes losses.txt, with which the tests compare.

usage: make_losses.py        Needs PyPI's lightning; the tests do not.

Lines are `<program> float64 20 <losses>` and `<program>/<metric> float64 - <value>`.
"""
import importlib
import logging
import pathlib
import sys
import warnings

from peer import Losses

HERE = pathlib.Path(__file__).parent
PROGRAMS = ["custom_function", "dqn", "language_model", "lstm", "residual_network", "vae"]
OPTIONS = {"accelerator": "cpu", "precision": "64-true", "logger": False, "enable_checkpointing": False,
           "enable_progress_bar": False, "enable_model_summary": False, "num_sanity_val_steps": 0}


def lines(name):
    losses = Losses()
    metrics = importlib.import_module(name).main(losses, **OPTIONS)
    yield f"{name} float64 {len(losses.values)} " + " ".join(f"{v:.17g}" for v in losses.values)
    for metric, value in sorted(metrics.items()):
        yield f"{name}/{metric} float64 - {float(value):.17g}"


def main():
    warnings.filterwarnings("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    text = "".join(line + "\n" for name in PROGRAMS for line in lines(name))
    (HERE / "losses.txt").write_text(text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
