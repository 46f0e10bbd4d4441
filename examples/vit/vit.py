"""The same model with PyTorch and Lightning."""
import argparse
import gzip
import pathlib

import lightning as L
import numpy as np
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import LearningRateMonitor
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import v2


def parse():
    line = argparse.ArgumentParser(description="Trains a vision transformer on Fashion-MNIST.")
    line.add_argument("--data", type=pathlib.Path, default="/usr/share/datasets/fashion-mnist")
    line.add_argument("--patch", type=int, default=4)
    line.add_argument("--width", type=int, default=64)
    line.add_argument("--heads", type=int, default=4)
    line.add_argument("--layers", type=int, default=4)
    line.add_argument("--batch-size", type=int, default=64)
    line.add_argument("--lr", type=float, default=1.5e-3)
    line.add_argument("--max-epochs", type=int, default=12)
    return line.parse_args()


class FashionMnist(Dataset):
    def __init__(self, folder, part, augment=None):
        def read(kind, skip):
            return np.frombuffer(gzip.open(next(folder.glob(f"{part}-{kind}*.gz"))).read(), np.uint8, offset=skip)
        self.images = torch.tensor(read("images", 16)).view(-1, 1, 28, 28)
        self.labels = torch.tensor(read("labels", 8)).long()
        self.augment = augment

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        image = self.augment(self.images[i]) if self.augment else self.images[i]
        return (image / 255 - 0.2860) / 0.3530, self.labels[i]


class Vit(L.LightningModule):
    def __init__(self, o):
        super().__init__()
        self.o = o
        self.embedding = nn.Conv2d(1, o.width, o.patch, o.patch)
        self.token = nn.Parameter(torch.zeros(1, 1, o.width))
        self.positions = nn.Parameter(torch.randn(1, 1 + (28 // o.patch) ** 2, o.width))
        layer = nn.TransformerEncoderLayer(o.width, o.heads, 4 * o.width, dropout=0, activation="gelu",
                                           batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, o.layers, nn.LayerNorm(o.width), enable_nested_tensor=False)
        self.head = nn.Linear(o.width, 10)

    def forward(self, x):
        seen = self.embedding(x).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.token.expand(len(x), -1, -1), seen], 1) + self.positions
        return self.head(self.encoder(tokens)[:, 0])

    def training_step(self, batch, index):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, index):
        x, y = batch
        self.log("val_acc", (self(x).argmax(1) == y).float().mean(), prog_bar=True)

    def configure_optimizers(self):
        adam = optim.AdamW(self.parameters(), lr=self.o.lr, weight_decay=0.05)
        rate = optim.lr_scheduler.OneCycleLR(adam, self.o.lr, int(self.trainer.estimated_stepping_batches),
                                             pct_start=0.1)
        return [adam], [{"scheduler": rate, "interval": "step"}]


def main():
    o = parse()
    L.seed_everything(1)
    train_loader = DataLoader(FashionMnist(o.data, "train", v2.RandomHorizontalFlip()), batch_size=o.batch_size,
                              shuffle=True, drop_last=True)
    test_loader = DataLoader(FashionMnist(o.data, "t10k"), batch_size=500)

    vit = Vit(o)
    trainer = L.Trainer(max_epochs=o.max_epochs, num_sanity_val_steps=0, gradient_clip_val=1.0,
                        default_root_dir="runs/vit", callbacks=[LearningRateMonitor()])
    trainer.fit(vit, train_loader, test_loader)
    accuracy = trainer.validate(vit, test_loader)[0]["val_acc"]
    print(f"result: test_accuracy={accuracy:.4f} epochs={trainer.current_epoch} "
          f"parameters={sum(p.numel() for p in vit.parameters())}")


if __name__ == "__main__":
    main()
