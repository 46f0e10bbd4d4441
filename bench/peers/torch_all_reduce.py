#!/usr/bin/env python3
"""PyTorch's side of tools/all_reduce.py: benchmarks all-reduce of its gloo backend, by size.
usage: torch_all_reduce.py RANKS        prints: torch  bytes  ms  GB/s"""
import datetime
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as processes


def run(rank, ranks):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=ranks, timeout=datetime.timedelta(seconds=300))
    for size in (4 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 40_000_000):
        calls = int(min(max(100e6 / size, 3), 100))
        data, best = torch.zeros(size // 4), 1e9
        for turn in range(6):  # the first round is the warm-up
            dist.barrier()
            start = time.perf_counter()
            for _ in range(calls):
                dist.all_reduce(data)
            if turn > 0:
                best = min(best, (time.perf_counter() - start) / calls)
        if rank == 0:
            print(f"torch {size} {1e3 * best:.4f} {1e-9 * size / best:.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()  # otherwise its threads may still run when the process exits


if __name__ == "__main__":
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29631")
    processes.spawn(run, (int(sys.argv[1]),), int(sys.argv[1]))
