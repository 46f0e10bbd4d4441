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
    line = argparse.ArgumentParser(description="Trains a residual network on Fashion-MNIST.")
    line.add_argument("--model", choices=["resnet20", "resnet18"], default="resnet20")
    line.add_argument("--data", type=pathlib.Path, default="/usr/share/datasets/fashion-mnist")
    line.add_argument("--batch-size", type=int, default=128)
    line.add_argument("--lr", type=float, default=0.1)
    line.add_argument("--max-epochs", type=int, default=8)
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


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Identity()
        if inputs != outputs or stride != 1:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + self.shortcut(x))


class ResNet(L.LightningModule):
    def __init__(self, o):
        super().__init__()
        self.o = o
        width, stages, depth = (64, 4, 2) if o.model == "resnet18" else (16, 3, 3)
        self.conv = nn.Conv2d(1, width, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(width)
        self.blocks, channels = nn.ModuleList(), width
        for stage in range(stages):
            for i in range(depth):
                self.blocks.append(Block(channels, width << stage, 2 if stage > 0 and i == 0 else 1))
                channels = width << stage
        self.head = nn.Linear(channels, 10)

    def forward(self, x):
        h = F.relu(self.bn(self.conv(x)))
        for block in self.blocks:
            h = block(h)
        return self.head(h.mean((2, 3)))

    def training_step(self, batch, index):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, index):
        x, y = batch
        self.log("val_acc", (self(x).argmax(1) == y).float().mean(), prog_bar=True)

    def configure_optimizers(self):
        sgd = optim.SGD(self.parameters(), lr=self.o.lr, momentum=0.9, weight_decay=5e-4, nesterov=True)
        rate = optim.lr_scheduler.OneCycleLR(sgd, self.o.lr, int(self.trainer.estimated_stepping_batches),
                                             cycle_momentum=False)
        return [sgd], [{"scheduler": rate, "interval": "step"}]


def main():
    o = parse()
    L.seed_everything(1)
    augment = v2.Compose([v2.RandomCrop(28, padding=2), v2.RandomHorizontalFlip()])
    train_loader = DataLoader(FashionMnist(o.data, "train", augment), batch_size=o.batch_size, shuffle=True,
                              drop_last=True)
    test_loader = DataLoader(FashionMnist(o.data, "t10k"), batch_size=500)

    net = ResNet(o)
    trainer = L.Trainer(max_epochs=o.max_epochs, num_sanity_val_steps=0, default_root_dir="runs/resnet",
                        callbacks=[LearningRateMonitor()])
    trainer.fit(net, train_loader, test_loader)
    accuracy = trainer.validate(net, test_loader)[0]["val_acc"]
    print(f"result: test_accuracy={accuracy:.4f} epochs={trainer.current_epoch} "
          f"parameters={sum(p.numel() for p in net.parameters())}")


if __name__ == "__main__":
    main()
