"""Rows of torch_operations.py, torch_sizes.py and gemm_peers.py: an operation forward alone, and forward with the gradients of all floating
inputs, in microseconds per call."""
import argparse
import os
import time

parser = argparse.ArgumentParser()
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("filters", nargs="*", metavar="PART-OF-A-NAME")
args = parser.parse_args()
os.environ["OPENBLAS_NUM_THREADS"] = str(args.threads)  # which NumPy reads when PyTorch imports it

import torch


TIME = 0.3  # seconds for a row


def least(f):
    """Returns the microseconds of a call: the least mean of windows of about a millisecond in TIME."""
    def seconds(n):
        start = time.perf_counter()
        for _ in range(n):
            f()
        return time.perf_counter() - start
    f()
    n = min(max(int(1e-3 / seconds(1)), 1), 1000)
    best, rounds, end = float("inf"), 0, time.perf_counter() + TIME
    while rounds < 5 or time.perf_counter() < end:
        best, rounds = min(best, seconds(n) / n), rounds + 1
    return best * 1e6


def gradients(name, leaves, f):
    if not wanted(name + " fwd+bwd"):
        return
    g = torch.randn_like(f())
    show(name + " fwd+bwd", least(lambda: torch.autograd.grad(f(), leaves, g)))


def compare(name, inputs, f, both=True):
    if wanted(name + " fwd"):
        with torch.no_grad():
            show(name + " fwd", least(lambda: f(*inputs)))
    if both and wanted(name + " fwd+bwd"):
        gradients(name, [x.requires_grad_() for x in inputs if x.is_floating_point()], lambda: f(*inputs))


def show(name, microseconds):
    print(f"{name:32s} {microseconds:12.3f} us", flush=True)


def wanted(name):
    return not args.filters or any(part in name for part in args.filters)


torch.set_num_threads(args.threads)
torch.set_flush_denormal(True)
