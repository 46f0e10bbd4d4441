#!/usr/bin/env python3
"""The peers' side of bench/compare/gemm.cpp: float32 products by MKL (PyTorch), oneDNN (PyTorch's linear) and OpenBLAS (NumPy).
usage: gemm_peers.py [--threads 2] [PART-OF-A-NAME...]        prints: name  figure of the fastest  unit
The fastest library of each row goes to stderr."""
import sys

import torch_rows  # first, because it sets the threads of OpenBLAS
from torch_rows import least, wanted

import numpy as np
import torch

torch_rows.TIME = 0.15

SQUARES = [64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096]
# m, n, k of the products in a training step of the nets that ./run compare trains.
NETS = [(128, 512, 784), (128, 10, 512), (128, 128, 800), (128, 128, 9216), (64, 1, 6272), (1024, 576, 192), (1024, 192, 768),
        (1024, 768, 192), (1024, 256, 192), (2048, 576, 192), (2048, 192, 768), (32, 1024, 256), (2048, 1024, 256)]


def product(m, n, k, how):
    name = f"{m}x{n}x{k} {how}"
    if not wanted(name):
        return
    a = torch.randn(k, m).t() if how[0] == "t" else torch.randn(m, k)
    b = torch.randn(n, k).t() if how[1] == "t" else torch.randn(k, n)
    x, y = a.numpy(), b.numpy()
    c, z = torch.empty(m, n), np.empty((m, n), np.float32)
    times = {"MKL": least(lambda: torch.mm(a, b, out=c)), "OpenBLAS": least(lambda: np.matmul(x, y, out=z)),
             "oneDNN": least(lambda: torch.ops.mkldnn._linear_pointwise(a, b.t(), None, "none", [], ""))}
    fastest = min(times, key=times.get)
    print(f"{name:32s} {2e-3 * m * n * k / times[fastest]:12.3f} GFLOP/s", flush=True)
    print(f"{name}: {fastest}", file=sys.stderr)


with torch.no_grad():
    for size in SQUARES:
        for how in ("nn", "nt", "tn", "tt"):
            product(size, size, size, how)
    for m, n, k in NETS:
        for how, shape in (("nt", (m, n, k)), ("nn", (m, k, n)), ("tn", (n, k, m))):  # y = x w^T and its two gradients
            product(*shape, how)
