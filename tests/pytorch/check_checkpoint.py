#!/usr/bin/env python3
"""Loads a checkpoint's model.safetensors into the same PyTorch network by name and prints its test accuracy.
usage: check_checkpoint.py CHECKPOINT [--model mlp|lenet|cnn] [--data DIR] [--expect 0.9061]
With --expect the two accuracies have to agree to two decimals of a percent."""
import argparse
import gzip
import pathlib
import sys

import numpy as np
import torch
import torch.nn as nn
from safetensors.torch import load_file

NETS = {
    "mlp": lambda: nn.Sequential(nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)),
    "lenet": lambda: nn.Sequential(nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 5), nn.ReLU(),
                                   nn.MaxPool2d(2), nn.Flatten(), nn.Linear(800, 128), nn.ReLU(), nn.Linear(128, 10)),
    "cnn": lambda: nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                                 nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10)),
}


def read_idx(path):
    data = gzip.open(path).read()
    sizes = [int.from_bytes(data[4 + 4 * i:8 + 4 * i], "big") for i in range(data[3])]
    return torch.from_numpy(np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(sizes).copy())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("checkpoint", type=pathlib.Path)
    parser.add_argument("--model", default="lenet", choices=NETS)
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist", type=pathlib.Path)
    parser.add_argument("--expect", type=float)
    args = parser.parse_args()

    state = load_file(args.checkpoint / "model.safetensors")
    net = NETS[args.model]()
    wanted = net.state_dict().keys()
    first = next(iter(wanted))
    prefix = next(name.removesuffix(first) for name in state
                  if name.endswith(first) and all(name.removesuffix(first) + w in state for w in wanted))
    net.load_state_dict({w: state[prefix + w] for w in wanted})

    images = read_idx(args.data / "t10k-images-idx3-ubyte.gz").float().div(255).sub(0.2860).div(0.3530).unsqueeze(1)
    labels = read_idx(args.data / "t10k-labels-idx1-ubyte.gz").long()
    with torch.no_grad():
        right = sum((net(images[i:i + 1000]).argmax(1) == labels[i:i + 1000]).sum().item() for i in range(0, len(labels), 1000))
    accuracy = right / len(labels)
    print(f"PyTorch {torch.__version__}: test accuracy {accuracy:.4f} with the weights of {args.checkpoint}")
    if args.expect is not None and round(accuracy, 4) != round(args.expect, 4):
        sys.exit(f"error: {accuracy:.4f} here, {args.expect:.4f} expected")


main()
