import lightning as L
import torch
import torch.nn.functional as F
import torchmetrics
from peer import Losses, formula
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Squareplus(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        root = torch.sqrt(x * x + 4)
        ctx.save_for_backward(x, root)
        return (x + root) / 2

    @staticmethod
    def backward(ctx, g):
        x, root = ctx.saved_tensors
        return g * (1 + x / root) / 2


class MaxError(torchmetrics.Metric):
    def __init__(self):
        super().__init__()
        self.add_state("worst", torch.tensor(0.0), dist_reduce_fx="max")

    def update(self, predicted, target):
        self.worst = torch.maximum(self.worst, (predicted - target).abs().max())

    def compute(self):
        return self.worst


class HalveRate(L.Callback):
    def on_train_epoch_end(self, trainer, module):
        for group in trainer.optimizers[0].param_groups:
            group["lr"] *= 0.5


class Fit(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(2, 16), nn.Linear(16, 1)
        self.max_error = MaxError()

    def forward(self, x):
        return self.fc2(Squareplus.apply(self.fc1(x))).squeeze(1)

    def training_step(self, batch, index):
        x, y = batch
        return F.mse_loss(self(x), y)

    def validation_step(self, batch, index):
        x, y = batch
        self.max_error.update(self(x), y)
        self.log("max_error", self.max_error)

    def configure_optimizers(self):
        return optim.SGD(self.parameters(), lr=0.02, momentum=0.9)


def main(losses, **options):
    x = formula(64, 2, salt=4)
    loader = DataLoader(TensorDataset(x, x[:, 0] * x[:, 1]), batch_size=16)
    trainer = L.Trainer(max_epochs=5, callbacks=[losses, HalveRate()], **options)
    trainer.fit(Fit(), loader, loader)
    return trainer.callback_metrics
