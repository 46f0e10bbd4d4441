#!/usr/bin/env python3
"""PyTorch's side of bench/compare/operations.cpp: operations that people train with, in microseconds per call.
usage: torch_operations.py [--threads 2] [PART-OF-A-NAME...]        prints: name  figure  unit"""
import torch
import torch.nn.functional as F

from torch_rows import compare, gradients


def image():
    return torch.randn(16, 64, 32, 32)


def positive(*sizes):
    return torch.rand(*sizes) * 0.9 + 0.05


def recurrent():
    def layer(name, module, steps, batch):
        x = torch.randn(steps, batch, module.input_size)
        gradients(name, list(module.parameters()), lambda: module(x)[0])
    layer("lstm 2x256 T64 B32", torch.nn.LSTM(256, 256, 2), 64, 32)
    layer("gru 2x256 T64 B32", torch.nn.GRU(256, 256, 2), 64, 32)
    layer("rnn 2x256 T64 B32", torch.nn.RNN(256, 256, 2), 64, 32)
    layer("lstm 1x64 T32 B16", torch.nn.LSTM(64, 64), 32, 16)
    layer("gru 1x64 T32 B16", torch.nn.GRU(64, 64), 32, 16)
    layer("rnn 1x64 T32 B16", torch.nn.RNN(64, 64), 32, 16)


def convolutions():
    compare("conv1d 32x64x256 k3", [torch.randn(32, 64, 256), torch.randn(64, 64, 3)], lambda x, w: F.conv1d(x, w, padding=1))
    compare("conv2d depthwise 3x3", [image(), torch.randn(64, 1, 3, 3)], lambda x, w: F.conv2d(x, w, padding=1, groups=64))
    compare("conv2d depthwise 5x5 s2", [image(), torch.randn(64, 1, 5, 5)], lambda x, w: F.conv2d(x, w, stride=2, padding=2, groups=64))
    compare("conv2d grouped 3x3", [image(), torch.randn(64, 16, 3, 3)], lambda x, w: F.conv2d(x, w, padding=1, groups=4))
    compare("conv3d 2x8x8x16x16 k3", [torch.randn(2, 8, 8, 16, 16), torch.randn(16, 8, 3, 3, 3)], lambda x, w: F.conv3d(x, w, padding=1))
    compare("conv_transpose3d 2x16x8x16x16 k3", [torch.randn(2, 16, 8, 16, 16), torch.randn(16, 8, 3, 3, 3)],
            lambda x, w: F.conv_transpose3d(x, w, padding=1))


def norms():
    def parameters():
        return torch.ones(64), torch.ones(64)
    compare("group_norm 8 groups", [image(), *parameters()], lambda x, w, b: F.group_norm(x, 8, w, b))
    compare("instance_norm", [image(), *parameters()], lambda x, w, b: F.instance_norm(x, weight=w, bias=b))
    compare("batch_norm training", [image(), *parameters()], lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True))
    compare("rms_norm 2048x512", [torch.randn(2048, 512), torch.ones(512)], lambda x, w: F.rms_norm(x, (512,), w))


def activations():
    def x():
        return torch.randn(256, 4096)
    for name in ("mish", "hardswish", "hardsigmoid", "selu", "celu", "silu"):
        compare(name, [x()], getattr(F, name))
    compare("prelu", [image(), torch.full((64,), 0.25)], F.prelu)
    compare("glu", [x()], F.glu)


def losses():
    def pair(name, x, y, loss):
        compare(name, [x], lambda x: loss(x, y))
    def values():
        return torch.randn(256, 4096)
    pair("smooth_l1_loss", values(), values(), F.smooth_l1_loss)
    pair("huber_loss", values(), values(), F.huber_loss)
    pair("mse_loss", values(), values(), F.mse_loss)
    pair("kl_div", values(), positive(256, 4096), lambda x, y: F.kl_div(x, y, reduction="mean"))
    pair("binary_cross_entropy", positive(256, 4096), positive(256, 4096), F.binary_cross_entropy)
    pair("cross_entropy 512x1000", torch.randn(512, 1000), torch.randint(0, 1000, (512,)), F.cross_entropy)
    pair("ctc_loss T64 B16 C32", torch.randn(64, 16, 32).log_softmax(2), torch.randint(0, 31, (16, 16)) + 1,
         lambda x, y: F.ctc_loss(x, y, [64] * 16, [16] * 16))


def images():
    compare("interpolate bilinear x2", [image()], lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"))
    compare("interpolate nearest x2", [image()], lambda x: F.interpolate(x, scale_factor=2))
    compare("adaptive_avg_pool2d(1)", [image()], lambda x: F.adaptive_avg_pool2d(x, 1))
    compare("adaptive_avg_pool2d(7)", [image()], lambda x: F.adaptive_avg_pool2d(x, 7))
    compare("max_pool2d(2)", [image()], lambda x: F.max_pool2d(x, 2))
    compare("avg_pool2d(2)", [image()], lambda x: F.avg_pool2d(x, 2))
    compare("avg_pool1d(2)", [torch.randn(32, 64, 512)], lambda x: F.avg_pool1d(x, 2))
    compare("max_pool1d(2)", [torch.randn(32, 64, 512)], lambda x: F.max_pool1d(x, 2))
    compare("pad reflect", [image()], lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect"))
    compare("pixel_shuffle(2)", [image()], lambda x: F.pixel_shuffle(x, 2))
    compare("grid_sample", [torch.randn(8, 16, 32, 32), torch.rand(8, 32, 32, 2) * 2 - 1], lambda x, g: F.grid_sample(x, g, align_corners=False))


def statistics():
    def x():
        return torch.randn(256, 1024)
    compare("cumsum", [x()], lambda x: x.cumsum(1))
    compare("cumprod", [positive(256, 1024) + 0.5], lambda x: x.cumprod(1))
    compare("cummax", [x()], lambda x: x.cummax(1).values)
    compare("logcumsumexp", [x()], lambda x: x.logcumsumexp(1))
    compare("median", [x()], lambda x: x.median(1).values)
    compare("quantile", [x()], lambda x: x.quantile(0.3, 1))
    compare("sort", [x()], lambda x: x.sort(1).values)
    compare("topk 10", [x()], lambda x: x.topk(10, 1).values)
    compare("unique", [torch.randint(0, 1000, (100_000,))], lambda x: torch.unique(x, return_inverse=True, return_counts=True)[0], both=False)
    compare("searchsorted 1000", [torch.randn(1000).sort().values, x()], torch.searchsorted, both=False)


def products():
    compare("einsum bij,bjk->bik", [torch.randn(16, 128, 128), torch.randn(16, 128, 128)], lambda x, y: torch.einsum("bij,bjk->bik", x, y))
    compare("cdist 512x512x64", [torch.randn(512, 64), torch.randn(512, 64)], torch.cdist)


def factorizations():
    linalg = torch.linalg
    for size, sizes in (("256", (256, 256)), ("64x16", (64, 16, 16))):
        x = torch.randn(sizes)
        spd = x @ x.mT + torch.eye(sizes[-1])
        compare(f"cholesky {size}", [spd], linalg.cholesky)
        compare(f"qr {size}", [x], lambda x: linalg.qr(x).Q)
        compare(f"eigh {size}", [spd], lambda x: linalg.eigh(x).eigenvectors)
        compare(f"svd {size}", [x], lambda x: linalg.svd(x, full_matrices=False).U)
        compare(f"solve {size}", [spd, x], linalg.solve)
        compare(f"slogdet {size}", [spd], lambda x: linalg.slogdet(x).logabsdet)


def indexing():
    bag, words = torch.nn.EmbeddingBag(10_000, 64), torch.randint(0, 10_000, (256, 16))
    gradients("embedding_bag 256x16", [bag.weight], lambda: bag(words))
    table, rows, columns = torch.randn(1000, 64), torch.randint(0, 1000, (4096,)), torch.randint(0, 64, (4096,))
    wide_rows = torch.randint(0, 1000, (4096, 1)).expand(4096, 64).contiguous()
    compare("index x[i, j]", [table], lambda x: x[rows, columns])
    compare("index x[i]", [table], lambda x: x[rows])
    compare("index_put", [table, torch.randn(4096, 64)], lambda x, v: x.index_put((rows,), v, accumulate=True))
    for how in ("sum", "amax"):
        compare(f"scatter_reduce {how}", [table, torch.randn(4096, 64)], lambda x, v: x.scatter_reduce(0, wide_rows, v, how))
    compare("repeat_interleave", [torch.randn(1024, 256)], lambda x: x.repeat_interleave(4, 0))
    compare("roll", [image()], lambda x: x.roll((3, 5), (2, 3)))


for family in (recurrent, convolutions, norms, activations, losses, images, statistics, products, factorizations, indexing):
    family()
