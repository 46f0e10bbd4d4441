"""The same model with PyTorch and Lightning."""
import argparse

import lightning as L
import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.classification import BinaryAUROC


def parse():
    line = argparse.ArgumentParser(description="Predicts from the items that people clicked whether they like another one.")
    line.add_argument("--users", type=int, default=100000)
    line.add_argument("--held-out", type=int, default=2000)
    line.add_argument("--items", type=int, default=300)
    line.add_argument("--history", type=int, default=30)
    line.add_argument("--width", type=int, default=16)
    line.add_argument("--batch-size", type=int, default=256)
    line.add_argument("--lr", type=float, default=5e-3)
    line.add_argument("--max-epochs", type=int, default=20)
    return line.parse_args()


class People:
    def __init__(self, o, items, count):
        tastes = torch.randn(count, 8)
        clicked = torch.multinomial(F.softmax(tastes @ items.T, 1), o.history)
        lengths = torch.randint(o.history // 2, o.history + 1, (count, 1))
        self.history = torch.where(torch.arange(o.history) < lengths, clicked + 1, 0)
        self.item = torch.randint(1, o.items + 1, (count,))
        self.best = torch.sigmoid(2 * (tastes * items[self.item - 1]).sum(1))
        self.likes = torch.bernoulli(self.best)


class Recommender(L.LightningModule):
    def __init__(self, o):
        super().__init__()
        self.o = o
        self.clicked = nn.EmbeddingBag(o.items + 1, o.width, mode="mean", padding_idx=0)
        self.taste = nn.Sequential(nn.Linear(o.width, 2 * o.width), nn.ReLU(), nn.Linear(2 * o.width, o.width))
        self.items = nn.Embedding(o.items + 1, o.width)
        self.auc = BinaryAUROC()

    def score(self, history, item):
        return (self.taste(self.clicked(history)) * self.items(item)).sum(1)

    def training_step(self, batch, index):
        history, item, likes = batch
        loss = F.binary_cross_entropy_with_logits(self.score(history, item), likes)
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, index):
        history, item, likes = batch
        self.auc.update(torch.sigmoid(self.score(history, item)), likes.long())
        self.log("val_auc", self.auc, prog_bar=True)

    def configure_optimizers(self):
        return optim.Adam(self.parameters(), lr=self.o.lr)


def main():
    o = parse()
    L.seed_everything(1)
    items = torch.randn(o.items, 8)
    known, others = People(o, items, o.users), People(o, items, o.held_out)
    train_loader = DataLoader(TensorDataset(known.history, known.item, known.likes), batch_size=o.batch_size,
                              shuffle=True, drop_last=True)
    val_loader = DataLoader(TensorDataset(others.history, others.item, others.likes), batch_size=500)

    model = Recommender(o)
    trainer = L.Trainer(max_epochs=o.max_epochs, num_sanity_val_steps=0, default_root_dir="runs/recommender")
    trainer.fit(model, train_loader, val_loader)
    auc = trainer.validate(model, val_loader)[0]["val_auc"]
    best = BinaryAUROC()(others.best, others.likes.long())
    print(f"result: auc={auc:.4f} best_possible={best:.4f} users={o.users} items={o.items}")


if __name__ == "__main__":
    main()
