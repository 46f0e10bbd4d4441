"""The same model with PyTorch and Lightning."""
import argparse
import gzip
import pathlib

import lightning as L
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
from torchvision.utils import save_image


def parse():
    line = argparse.ArgumentParser(description="Trains a variational autoencoder on Fashion-MNIST.")
    line.add_argument("--data", type=pathlib.Path, default="/usr/share/datasets/fashion-mnist")
    line.add_argument("--hidden", type=int, default=400)
    line.add_argument("--latent", type=int, default=20)
    line.add_argument("--batch-size", type=int, default=128)
    line.add_argument("--lr", type=float, default=1e-3)
    line.add_argument("--max-epochs", type=int, default=10)
    return line.parse_args()


def fashion_mnist(folder, part):
    def read(kind, skip):
        return np.frombuffer(gzip.open(next(folder.glob(f"{part}-{kind}*.gz"))).read(), np.uint8, offset=skip)
    images = torch.tensor(read("images", 16)).view(-1, 1, 28, 28) / 255
    return TensorDataset(images, torch.tensor(read("labels", 8)).long())


class Encoder(nn.Module):
    def __init__(self, hidden, latent):
        super().__init__()
        self.body = nn.Linear(784, hidden)
        self.mean = nn.Linear(hidden, latent)
        self.logvar = nn.Linear(hidden, latent)

    def forward(self, x):
        h = F.relu(self.body(x.flatten(1)))
        return self.mean(h), self.logvar(h)


class Vae(L.LightningModule):
    def __init__(self, o):
        super().__init__()
        self.o = o
        self.encoder = Encoder(o.hidden, o.latent)
        self.decoder = nn.Sequential(nn.Linear(o.latent, o.hidden), nn.ReLU(), nn.Linear(o.hidden, 784))

    def draw(self, z):
        return torch.sigmoid(self.decoder(z)).view(-1, 1, 28, 28)

    def on_after_batch_transfer(self, batch, dataloader_idx):
        x, label = batch[:2]
        return batch if len(batch) == 3 else [x, label, torch.randn(len(x), self.o.latent).to(x)]

    def loss(self, batch, stage):
        x, label, noise = batch
        mean, logvar = self.encoder(x)
        logits = self.decoder(mean + noise * torch.exp(0.5 * logvar))
        reconstruction = F.binary_cross_entropy_with_logits(logits, x.flatten(1), reduction="sum") / len(x)
        kl = -0.5 * (1 + logvar - mean**2 - logvar.exp()).sum(1).mean()
        self.log_dict({f"{stage}_reconstruction": reconstruction, f"{stage}_kl": kl})
        self.log(f"{stage}_loss", reconstruction + kl, prog_bar=True)
        return reconstruction + kl

    def training_step(self, batch, index):
        return self.loss(batch, "train")

    def validation_step(self, batch, index):
        self.loss(batch, "val")

    def configure_optimizers(self):
        return optim.Adam(self.parameters(), lr=self.o.lr)


class Grid(L.Callback):
    def __init__(self, codes):
        self.codes = codes

    def on_train_epoch_end(self, trainer, vae):
        with torch.no_grad():
            images = vae.draw(self.codes.to(vae.device, vae.dtype))
        save_image(images, pathlib.Path(trainer.default_root_dir) / "drawn.png")


def main():
    o = parse()
    L.seed_everything(1)
    train_loader = DataLoader(fashion_mnist(o.data, "train"), batch_size=o.batch_size, shuffle=True, drop_last=True)
    test_loader = DataLoader(fashion_mnist(o.data, "t10k"), batch_size=1000)

    vae = Vae(o)
    trainer = L.Trainer(max_epochs=o.max_epochs, num_sanity_val_steps=0, default_root_dir="runs/vae",
                        callbacks=[Grid(torch.randn(64, o.latent))])
    trainer.fit(vae, train_loader, test_loader)
    metrics = trainer.validate(vae, test_loader)[0]
    print(f"images: runs/vae/drawn.png\nresult: test_loss={metrics['val_loss']:.2f} "
          f"reconstruction={metrics['val_reconstruction']:.2f} kl={metrics['val_kl']:.2f} epochs={trainer.current_epoch}")


if __name__ == "__main__":
    main()
