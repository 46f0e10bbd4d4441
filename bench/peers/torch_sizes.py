#!/usr/bin/env python3
"""PyTorch's side of bench/compare/sizes.cpp: layers from the smallest to the largest sizes in use.
usage: torch_sizes.py [--threads 2] [PART-OF-A-NAME...]        prints: name  figure  unit"""
import torch
import torch.nn.functional as F

import torch_rows
from torch_rows import compare

torch_rows.TIME = 0.1


def dense():
    for width in (16, 64, 256, 1024, 4096):
        for batch in (1, 16, 128, 1024):
            shape = f"{batch}x{width}"
            compare(f"linear {shape}", [torch.randn(batch, width), torch.randn(width, width), torch.randn(width)], F.linear)
            compare(f"relu {shape}", [torch.randn(batch, width)], F.relu)
            compare(f"gelu {shape}", [torch.randn(batch, width)], F.gelu)
            compare(f"softmax {shape}", [torch.randn(batch, width)], lambda x: x.softmax(1))
            compare(f"layer_norm {shape}", [torch.randn(batch, width), torch.ones(width), torch.zeros(width)],
                    lambda x, w, b: F.layer_norm(x, (width,), w, b))
            y = torch.randint(0, width, (batch,))
            compare(f"cross_entropy {shape}", [torch.randn(batch, width)], lambda x: F.cross_entropy(x, y))


def images():
    for size in (8, 16, 32, 64, 128, 224):
        for batch in (1, 16, 64):
            if batch * size * size > 16 * 224 * 224:
                continue
            shape, image = f"{batch}x32x{size}", torch.randn(batch, 32, size, size)
            compare(f"conv k3 {shape}", [image, torch.randn(32, 32, 3, 3)], lambda x, w: F.conv2d(x, w, padding=1))
            compare(f"conv k1 {shape}", [image, torch.randn(64, 32, 1, 1)], F.conv2d)
            compare(f"conv k3 s2 {shape}", [image, torch.randn(64, 32, 3, 3)], lambda x, w: F.conv2d(x, w, stride=2, padding=1))
            compare(f"batch_norm {shape}", [image, torch.ones(32), torch.zeros(32)],
                    lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True))
            compare(f"max_pool2d(2) {shape}", [image], lambda x: F.max_pool2d(x, 2))


def attention():
    for length in (16, 64, 256, 1024):
        for batch in (1, 8):
            heads = [torch.randn(batch, 8, length, 64) for _ in range(3)]
            compare(f"attention {batch}x8x{length}x64", heads, F.scaled_dot_product_attention)


dense()
images()
attention()
