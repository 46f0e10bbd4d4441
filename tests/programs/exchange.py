"""Writes exchange.safetensors: a network of PyTorch with its input and output, which exchange_test.cpp loads."""
import pathlib

import torch
from peer import formula, set_weights
from safetensors.torch import load_file, save_file
from torch import nn


def main():
    net = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 3))
    set_weights(net)
    x = formula(5, 1, 6, 6, salt=9)
    net(x)  # moves the running statistics
    net.eval()
    path = pathlib.Path(__file__).parent / "exchange.safetensors"
    save_file({**{f"net.{k}": v for k, v in net.state_dict().items()}, "input": x, "output": net(x).detach()}, path, {"made_by": "PyTorch"})

    copy = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 3))
    copy.load_state_dict({k[4:]: v for k, v in load_file(path).items() if k.startswith("net.")})
    assert torch.equal(copy.eval()(x), net(x))


if __name__ == "__main__":
    main()
