"""Shared by the PyTorch programs of this folder: data that C++ computes too, equal weights, and the losses of a fit."""
import lightning as L
import numpy as np
import torch


def formula(*sizes, salt):
    """Returns numbers that C++ computes too: a hash of the index, as a multiple of 2^-15 in [-1, 1)."""
    i = np.arange(np.prod(sizes, dtype=np.int64), dtype=np.int64)
    h = (i * 2654435761 + salt * 40503) % 4294967296
    h = ((h ^ (h >> 15)) * 2246822519) % 4294967296
    return torch.from_numpy(((h >> 16) - 32768).astype(np.float32) / 32768).reshape(sizes)


def set_weights(module):
    """Sets matrices and biases by the formula, times a power of two near 1 / sqrt(fan in); gains stay 1."""
    salt, scale = 0, 1.0
    with torch.no_grad():
        for p in module.parameters():
            if p.dim() > 1:
                scale = 2.0 ** -round(np.log2(p[0].numel()) / 2)
            if p.dim() > 1 or not bool((p == 1).all()):
                p.copy_(formula(*p.shape, salt=salt) * scale)
            salt += 1


class Losses(L.Callback):
    """Sets the weights before training, and keeps the loss of every step."""

    def __init__(self):
        self.values = []

    def on_fit_start(self, trainer, module):
        set_weights(module)

    def on_train_batch_end(self, trainer, module, outputs, batch, index):
        loss = outputs["loss"] if isinstance(outputs, dict) else outputs
        self.values.append(float(loss))
