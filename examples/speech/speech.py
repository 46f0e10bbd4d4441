"""The same model with PyTorch and Lightning."""
import argparse
import random

import lightning as L
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import LearningRateMonitor
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset
from torchmetrics.text import CharErrorRate

RATE, LENGTH = 8000, 24576  # samples per second, and of a recording
# The digits in English, one letter for each twentieth of a second.
DIGITS = ["zziirrouu", "wwaAAnn", "_ttuuuuu", "TTrriiii", "ffooorr",
          "ffaaIivv", "ssI_kkss", "ssevvAAnn", "eeIii_t", "nnaaIinn"]
# Three formants in Hz (vowels: Peterson & Barney 1952), and the strengths of voice and noise.
SOUNDS = {
    "i": (270, 2290, 3010, 1, 0), "I": (390, 1990, 2550, 1, 0), "e": (530, 1840, 2480, 1, 0),
    "a": (730, 1090, 2440, 1, 0), "A": (640, 1190, 2390, 1, 0), "o": (570, 840, 2410, 1, 0),
    "u": (300, 870, 2240, 1, 0), "r": (310, 1060, 1380, 0.7, 0), "w": (290, 610, 2150, 0.7, 0),
    "n": (280, 1700, 2600, 0.4, 0), "v": (220, 1100, 2080, 0.3, 0.05), "z": (240, 3300, 3700, 0.2, 0.2),
    "s": (3300, 3600, 3900, 0, 0.3), "f": (1400, 2700, 3700, 0, 0.1), "T": (1600, 2800, 3800, 0, 0.07),
    "t": (2800, 3400, 3800, 0, 0.4), "k": (1500, 2000, 2600, 0, 0.4), "_": (500, 1500, 2500, 0, 0)}


def parse():
    line = argparse.ArgumentParser(description="Trains a convolutional network to write down numbers that synthetic "
                                   "speakers say.")
    line.add_argument("--speakers", type=int, default=300)
    line.add_argument("--held-out", type=int, default=50)
    line.add_argument("--takes", type=int, default=10)
    line.add_argument("--bands", type=int, default=40)
    line.add_argument("--width", type=int, default=64)
    line.add_argument("--batch-size", type=int, default=32)
    line.add_argument("--lr", type=float, default=3e-3)
    line.add_argument("--max-epochs", type=int, default=8)
    return line.parse_args()


class Speaker:
    def __init__(self, rng):
        self.pitch, self.size, self.speed = rng.uniform(80, 300), rng.uniform(0.85, 1.2), rng.uniform(0.8, 1.3)

    def say(self, letters, rng):
        sounds = torch.tensor([SOUNDS[c] for c in letters], dtype=torch.float32).T[None]
        frames = int(len(letters) * RATE / 20 / 64 / self.speed)
        strengths = F.interpolate(sounds[:, 3:], 64 * (frames - 1), mode="linear")[0]
        fall = torch.linspace(1.1, rng.uniform(0.7, 1.0), strengths.size(1))
        voice = torch.frac(torch.cumsum(fall * self.pitch * rng.uniform(0.9, 1.1) / RATE, 0)) - 0.5
        source = voice * strengths[0] + torch.randn(voice.shape) * strengths[1]
        formants = F.interpolate(sounds[:, :3], frames, mode="linear")[0]
        hertz = torch.linspace(0, RATE / 2, 129).unsqueeze(1)
        resonance = torch.zeros(129, frames)
        for i in range(3):
            resonance += 1 / (1 + ((hertz - formants[i] * self.size * rng.uniform(0.95, 1.05)) / (80 + 40 * i))**2)
        window = torch.hann_window(256)
        spectrum = torch.stft(source, 256, 64, window=window, return_complex=True)
        spoken = torch.istft(spectrum * resonance, 256, 64, window=window)
        out = spoken.std() * rng.uniform(0.1, 1.0) * torch.randn(LENGTH)
        begin = rng.randrange(LENGTH - len(spoken))
        out[begin:begin + len(spoken)] += spoken
        return out * 0.1 / out.std()


class Recordings(Dataset):
    def __init__(self, speakers, takes, seed):
        self.samples = []
        for speaker in range(speakers):
            for take in range(takes):
                self.samples.append(self.sample(Speaker(random.Random(f"{seed} {speaker}")),
                                                random.Random(f"{seed} {speaker} {take}")))

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, i):
        return self.samples[i]

    @staticmethod
    def sample(speaker, rng):
        digits = [rng.randint(1, 10) for _ in range(rng.randint(1, 4))]
        letters = "_" + "".join(DIGITS[digit - 1] + "_" * rng.randrange(3) for digit in digits)
        return speaker.say(letters, rng), torch.tensor(digits + [0] * (4 - len(digits)))


def text_of(classes):
    return "".join(str(i - 1) for i in classes.tolist() if i > 0)


def mel_filters(bands):
    """The triangular filters of torchaudio's MelSpectrogram, (129, bands)."""
    top = 2595 * torch.log10(torch.tensor(1 + RATE / 2 / 700, dtype=torch.float64))
    points = 700 * (10**(torch.linspace(0, top.item(), bands + 2, dtype=torch.float64) / 2595) - 1)
    slopes = points - torch.linspace(0, RATE / 2, 129, dtype=torch.float64).unsqueeze(1)
    falling, rising = -slopes[:, :-2] / points.diff()[:-1], slopes[:, 2:] / points.diff()[1:]
    return torch.minimum(falling, rising).clamp(min=0)


class Recognizer(L.LightningModule):
    def __init__(self, o):
        super().__init__()
        self.o = o

        def stage(inputs, outputs):
            return nn.Sequential(nn.Conv1d(inputs, outputs, 5, padding=2, bias=False), nn.BatchNorm1d(outputs),
                                 nn.ReLU())
        self.scale = nn.BatchNorm1d(o.bands, affine=False)
        self.body = nn.Sequential(stage(o.bands, o.width), nn.MaxPool1d(2), stage(o.width, 2 * o.width),
                                  nn.MaxPool1d(2), stage(2 * o.width, 2 * o.width))
        self.head = nn.Conv1d(2 * o.width, 11, 5, padding=2)
        self.errors = CharErrorRate()
        self.filters = mel_filters(o.bands)

    def mel_spectrogram(self, x):
        window = torch.hann_window(256, dtype=x.dtype, device=x.device)
        power = torch.stft(x, 256, 128, window=window, return_complex=True).abs()**2
        return (power.mT @ self.filters.to(x)).mT

    def forward(self, x):
        return self.head(self.body(self.scale(torch.log(self.mel_spectrogram(x) + 1e-3))))

    def training_step(self, batch, index):
        x, digits = batch
        y = F.log_softmax(self(x), 1).permute(2, 0, 1)
        loss = F.ctc_loss(y, digits, torch.full((len(x),), len(y)), (digits > 0).sum(1))
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def read(self, logits):
        return text_of(torch.unique_consecutive(logits.argmax(0)))

    def validation_step(self, batch, index):
        x, digits = batch
        texts, expected = [self.read(y) for y in self(x)], [text_of(d) for d in digits]
        self.errors.update(texts, expected)
        self.log("val_exact", sum(a == b for a, b in zip(texts, expected)) / len(x), prog_bar=True)
        self.log("val_errors", self.errors)

    def configure_optimizers(self):
        adam = optim.AdamW(self.parameters(), lr=self.o.lr)
        rate = optim.lr_scheduler.OneCycleLR(adam, self.o.lr, int(self.trainer.estimated_stepping_batches))
        return [adam], [{"scheduler": rate, "interval": "step"}]


def main():
    o = parse()
    L.seed_everything(1)
    train_loader = DataLoader(Recordings(o.speakers, o.takes, 1), batch_size=o.batch_size, shuffle=True, drop_last=True)
    val_loader = DataLoader(Recordings(o.held_out, o.takes, 2), batch_size=250)

    model = Recognizer(o)
    trainer = L.Trainer(max_epochs=o.max_epochs, num_sanity_val_steps=0, default_root_dir="runs/speech",
                        callbacks=[LearningRateMonitor()])
    trainer.fit(model, train_loader, val_loader)
    metrics = trainer.validate(model, val_loader)[0]
    print(f"result: accuracy={metrics['val_exact']:.4f} digit_errors={metrics['val_errors']:.4f} speakers={o.speakers} "
          f"held_out={o.held_out} steps={trainer.global_step}")


if __name__ == "__main__":
    main()
