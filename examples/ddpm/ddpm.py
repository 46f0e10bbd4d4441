"""The same model with PyTorch and Lightning."""
import argparse
import gzip
import pathlib

import lightning as L
import numpy as np
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import EMAWeightAveraging
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
from torchvision.utils import save_image


def parse():
    line = argparse.ArgumentParser(
        description="Trains a U-Net to remove noise from Fashion-MNIST's images, and draws new images.")
    line.add_argument("--data", type=pathlib.Path, default="/usr/share/datasets/fashion-mnist")
    line.add_argument("--width", type=int, default=48)
    line.add_argument("--timesteps", type=int, default=200)
    line.add_argument("--batch-size", type=int, default=64)
    line.add_argument("--drawn", type=int, default=8)
    line.add_argument("--lr", type=float, default=1e-3)
    line.add_argument("--decay", type=float, default=0.995)
    line.add_argument("--max-epochs", type=int, default=5)
    return line.parse_args()


def images(folder, part):
    def read(classes, skip):
        return np.frombuffer(gzip.open(next(folder.glob(f"{part}-{classes}*.gz"))).read(), np.uint8, offset=skip)
    return [torch.tensor(read("images", 16)).view(-1, 1, 28, 28) / 127.5 - 1, torch.tensor(read("labels", 8)).long()]


class Block(nn.Module):
    def __init__(self, inputs, outputs, features):
        super().__init__()
        self.norm1 = nn.GroupNorm(8, inputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.time = nn.Linear(features, outputs)
        self.norm2 = nn.GroupNorm(8, outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.shortcut = nn.Identity() if inputs == outputs else nn.Conv2d(inputs, outputs, 1)

    def forward(self, x, t):
        h = self.conv1(F.silu(self.norm1(x))) + self.time(t)[..., None, None]
        return self.conv2(F.silu(self.norm2(h))) + self.shortcut(x)


class UNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("frequencies", torch.logspace(0, -4, width // 2))
        self.time = nn.Sequential(nn.Linear(width, 4 * width), nn.SiLU())
        self.classes = nn.Embedding(10, 4 * width)
        self.conv_in = nn.Conv2d(1, width, 4, stride=2, padding=1)
        self.down1 = Block(width, width, 4 * width)
        self.downsample = nn.Conv2d(width, 2 * width, 4, stride=2, padding=1)
        self.down2 = Block(2 * width, 2 * width, 4 * width)
        self.up2 = Block(2 * width, 2 * width, 4 * width)
        self.upsample = nn.ConvTranspose2d(2 * width, width, 4, stride=2, padding=1)
        self.up1 = Block(2 * width, width, 4 * width)
        self.norm = nn.GroupNorm(8, width)
        self.conv_out = nn.ConvTranspose2d(width, 1, 4, stride=2, padding=1)

    def forward(self, x, label, t):
        angles = t[..., None] * self.frequencies
        features = self.time(torch.cat([torch.sin(angles), torch.cos(angles)], 1)) + self.classes(label)
        fine = self.down1(self.conv_in(x), features)
        coarse = self.down2(self.downsample(fine), features)
        grown = self.upsample(self.up2(coarse, features))
        return self.conv_out(F.silu(self.norm(self.up1(torch.cat([grown, fine], 1), features))))


class Ddpm(L.LightningModule):
    def __init__(self, o):
        super().__init__()
        self.o = o
        self.unet = UNet(o.width)
        self.register_buffer("beta", torch.linspace(0.1, 20, o.timesteps) / o.timesteps)
        self.register_buffer("alpha_bar", torch.cumprod(1 - self.beta, 0))

    def on_after_batch_transfer(self, batch, dataloader_idx):
        if len(batch) == 4:
            return batch
        x, label = batch
        return [x, label, torch.randn_like(x), torch.randint(self.o.timesteps, (len(x),), device=self.device)]

    def loss(self, batch, stage):
        x, label, noise, t = batch
        a = self.alpha_bar[t].view(-1, 1, 1, 1)
        loss = F.mse_loss(self.unet(torch.sqrt(a) * x + torch.sqrt(1 - a) * noise, label, t), noise)
        self.log(f"{stage}_loss", loss, prog_bar=True)
        return loss

    def training_step(self, batch, index):
        return self.loss(batch, "train")

    def validation_step(self, batch, index):
        self.loss(batch, "val")

    def configure_optimizers(self):
        return optim.Adam(self.parameters(), lr=self.o.lr)

    def draw(self, x, label):
        for t in reversed(range(self.o.timesteps)):
            noise = self.unet(x, label, torch.full_like(label, t))
            x = (x - noise * self.beta[t] / torch.sqrt(1 - self.alpha_bar[t])) / torch.sqrt(1 - self.beta[t])
            if t > 0:
                x = x + torch.sqrt(self.beta[t]) * torch.randn_like(x)
        return (x + 1) / 2


class Grid(L.Callback):
    def __init__(self, noise):
        self.noise = noise

    def on_validation_epoch_end(self, trainer, ddpm):
        if trainer.state.fn != "fit":
            return
        label = torch.arange(len(self.noise), device=ddpm.device) % 10
        images = ddpm.draw(self.noise.to(ddpm.device, ddpm.dtype), label)
        save_image(images, pathlib.Path(trainer.default_root_dir) / "drawn.png", nrow=10)


def main():
    o = parse()
    L.seed_everything(1)
    test = images(o.data, "t10k")
    test += [torch.randn_like(test[0]), torch.randint_like(test[1], o.timesteps)]
    train_loader = DataLoader(TensorDataset(*images(o.data, "train")), batch_size=o.batch_size, shuffle=True,
                              drop_last=True)
    test_loader = DataLoader(TensorDataset(*test), batch_size=500)

    ddpm = Ddpm(o)
    trainer = L.Trainer(max_epochs=o.max_epochs, num_sanity_val_steps=0, default_root_dir="runs/ddpm",
                        callbacks=[Grid(torch.randn(10 * o.drawn, 1, 28, 28)), EMAWeightAveraging(decay=o.decay)])
    trainer.fit(ddpm, train_loader, test_loader)
    loss = trainer.validate(ddpm, test_loader)[0]["val_loss"]
    print(f"images: runs/ddpm/drawn.png\nresult: val_loss={loss:.4f} epochs={trainer.current_epoch} "
          f"parameters={sum(p.numel() for p in ddpm.parameters())}")


if __name__ == "__main__":
    main()
