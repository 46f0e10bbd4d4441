#!/usr/bin/env python3
"""PyTorch's side of tools/ddp_step.py: a step of DistributedDataParallel over gloo, one thread per rank.
usage: torch_ddp.py RANKS mlp|lenet|cnn STEPS        prints: torch  ranks  net  how  ms, as levin_bench_ddp_step does"""
import copy
import datetime
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as processes
from torch import nn
from torch.nn.functional import cross_entropy

WARM_UP, BATCH = 8, 128
NETS = {
    "mlp": lambda: nn.Sequential(nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(),
                                 nn.Linear(512, 10)),
    "lenet": lambda: nn.Sequential(nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 5),
                                   nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(800, 128), nn.ReLU(),
                                   nn.Linear(128, 10)),
    "cnn": lambda: nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
                                 nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10)),
}


def run(rank, ranks, name, steps):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=ranks, timeout=datetime.timedelta(seconds=300))
    x, y = torch.randn(BATCH, 1, 28, 28), torch.randint(0, 10, (BATCH,))
    net = NETS[name]()
    nets = {"alone": net}
    if ranks > 1:
        nets["ddp"] = nn.parallel.DistributedDataParallel(copy.deepcopy(net))
    optimizers = {how: torch.optim.Adam(n.parameters(), lr=1e-3) for how, n in nets.items()}
    took = {how: [] for how in nets}
    for _ in range(WARM_UP + steps):
        for how, n in nets.items():
            dist.barrier()
            start = time.perf_counter()
            optimizers[how].zero_grad()
            cross_entropy(n(x), y).backward()
            optimizers[how].step()
            took[how].append(time.perf_counter() - start)
    if rank == 0:
        for how, seconds in took.items():
            print(f"torch {ranks} {name} {how} {1e3 * statistics.median(seconds[WARM_UP:]):.4f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()  # otherwise its threads may still run when the process exits


if __name__ == "__main__":
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29632")
    processes.spawn(run, (int(sys.argv[1]), sys.argv[2], int(sys.argv[3])), int(sys.argv[1]))
