"""The same model with PyTorch and Lightning."""
import argparse
import math
import pathlib

import lightning as L
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import LearningRateMonitor
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset


def parse():
    line = argparse.ArgumentParser(
        description="Trains an LSTM to predict the Mackey-Glass series, or the next character of a text.")
    line.add_argument("--task", choices=["series", "language"], default="series")
    line.add_argument("--text", default="build/data/bible.txt")
    line.add_argument("--points", type=int, default=12000)
    line.add_argument("--ahead", type=int, default=17)
    line.add_argument("--hidden", type=int, default=64)
    line.add_argument("--layers", type=int, default=2)
    line.add_argument("--length", type=int, default=64)
    line.add_argument("--batch-size", type=int, default=32)
    line.add_argument("--lr", type=float, default=3e-3)
    line.add_argument("--max-epochs", type=int, default=40)
    return line.parse_args()


def mackey_glass(count):
    x = [1.2] * 171
    while len(x) < 10 * (count + 300):
        late = x[-171]
        x.append(x[-1] + 0.1 * (0.2 * late / (1 + late**10) - 0.1 * x[-1]))
    return torch.tensor(x)[::10][300:300 + count] - 1


class Windows(Dataset):
    def __init__(self, values, length, ahead):
        self.values, self.length, self.ahead = values, length, ahead

    def __len__(self):
        return (len(self.values) - self.length - self.ahead) // (self.length // 4) + 1

    def __getitem__(self, i):
        part = self.values[i * (self.length // 4):][:self.length + self.ahead]
        return part[:self.length], part[self.ahead:]


class Predictor(L.LightningModule):
    def __init__(self, o, symbols):
        super().__init__()
        self.o, self.symbols = o, symbols
        self.embedding = nn.Embedding(symbols, o.hidden) if symbols else None
        self.lstm = nn.LSTM(o.hidden if symbols else 1, o.hidden, o.layers, batch_first=True)
        self.head = nn.Linear(o.hidden, symbols or 1)

    def forward(self, x):
        return self.head(self.lstm(self.embedding(x) if self.symbols else x.unsqueeze(-1))[0])

    def loss(self, batch):
        x, y = batch
        if self.symbols:
            return F.cross_entropy(self(x).flatten(0, 1), y.flatten())
        known = x.size(1) // 2
        return F.mse_loss(self(x)[:, known:, 0], y[:, known:])

    def training_step(self, batch, index):
        loss = self.loss(batch)
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, index):
        self.log("val_loss", self.loss(batch), prog_bar=True)

    def configure_optimizers(self):
        adam = optim.Adam(self.parameters(), lr=self.o.lr)
        rate = optim.lr_scheduler.CosineAnnealingLR(adam, int(self.trainer.estimated_stepping_batches))
        return [adam], [{"scheduler": rate, "interval": "step"}]


def main():
    o = parse()
    L.seed_everything(1)
    values = mackey_glass(o.points)
    if o.task == "language":
        values = torch.tensor(list(pathlib.Path(o.text).read_bytes()[:o.points]))
        o.ahead = 1
    known = len(values) * 9 // 10
    train, val = Windows(values[:known], o.length, o.ahead), Windows(values[known:], o.length, o.ahead)
    train_loader = DataLoader(train, batch_size=o.batch_size, shuffle=True, drop_last=True)
    val_loader = DataLoader(val, batch_size=256)

    model = Predictor(o, 256 if o.task == "language" else 0)
    trainer = L.Trainer(max_epochs=o.max_epochs, num_sanity_val_steps=0, gradient_clip_val=1.0,
                        default_root_dir="runs/lstm", callbacks=[LearningRateMonitor()])
    trainer.fit(model, train_loader, val_loader)
    loss = trainer.validate(model, val_loader)[0]["val_loss"]
    if o.task == "language":
        print(f"result: val_loss={loss:.4f} steps={trainer.global_step}")
    else:
        print(f"result: nrmse={math.sqrt(loss / values.var()):.4f} steps={trainer.global_step}")


if __name__ == "__main__":
    main()
