"""The same model with PyTorch and Lightning."""
import argparse
import datetime
import random

import lightning as L
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import LearningRateMonitor
from torch import nn, optim
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

PAD, BEGIN, END = 0, 1, 2  # then bytes from " " on
SYMBOLS = 3 + 96
FORMATS = ["%A, %-d %B %Y", "%B %-d, %Y", "%-d %b %Y", "%d/%m/%Y", "%a %b %d %Y", "%-d.%-m.%Y"]


def parse():
    line = argparse.ArgumentParser(description="Trains a Transformer to translate dates in words into ISO 8601.")
    line.add_argument("--dates", type=int, default=20000)
    line.add_argument("--held-out", type=int, default=1000)
    line.add_argument("--width", type=int, default=64)
    line.add_argument("--heads", type=int, default=4)
    line.add_argument("--layers", type=int, default=2)
    line.add_argument("--batch-size", type=int, default=64)
    line.add_argument("--lr", type=float, default=2e-3)
    line.add_argument("--max-epochs", type=int, default=6)
    return line.parse_args()


def encode(text):
    return torch.tensor([BEGIN, *(3 + ord(c) - 32 for c in text), END])


def decode(codes):
    text = ""
    for code in codes.tolist():
        if code == END:
            break
        if code > END:
            text += chr(code - 3 + 32)
    return text


class Dates(Dataset):
    def __init__(self, count, held_out):
        rng, self.samples = random.Random(2 if held_out else 1), []
        while len(self.samples) < count:
            day = rng.randrange(73049)
            if (day % 10 == 0) == held_out:
                self.samples.append(self.sample(day - 25567, day // 10 % 6))

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, i):
        return self.samples[i]

    @staticmethod
    def sample(day, notation):
        date = datetime.date(1970, 1, 1) + datetime.timedelta(day)
        return encode(date.strftime(FORMATS[notation])), encode(date.strftime("%Y-%m-%d"))


def collate(samples):
    return [pad_sequence(part, batch_first=True, padding_value=PAD) for part in zip(*samples)]


class Translator(L.LightningModule):
    def __init__(self, o):
        super().__init__()
        self.o = o
        self.symbols = nn.Embedding(SYMBOLS, o.width, padding_idx=PAD)
        self.positions = nn.Embedding(64, o.width)
        self.transformer = nn.Transformer(o.width, o.heads, o.layers, o.layers, 4 * o.width, dropout=0, batch_first=True)
        self.head = nn.Linear(o.width, SYMBOLS)

    def embed(self, x):
        return self.symbols(x) + self.positions(torch.arange(x.size(1), device=x.device))

    def logits(self, words, begin):
        hidden = words == PAD
        causal = torch.ones(begin.size(1), begin.size(1), dtype=torch.bool, device=begin.device).triu(1)
        return self.head(self.transformer(self.embed(words), self.embed(begin), tgt_mask=causal,
                                          src_key_padding_mask=hidden, memory_key_padding_mask=hidden,
                                          tgt_is_causal=True))

    def training_step(self, batch, index):
        words, answer = batch
        y = self.logits(words, answer[:, :-1])
        loss = F.cross_entropy(y.flatten(0, 1), answer[:, 1:].flatten(), ignore_index=PAD)
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def translate(self, words):
        text = torch.full((len(words), 1), BEGIN, device=words.device)
        for _ in range(11):
            text = torch.cat([text, self.logits(words, text)[:, -1].argmax(1, keepdim=True)], 1)
        return text

    def validation_step(self, batch, index):
        words, answer = batch
        self.log("val_exact", (self.translate(words) == answer).all(1).float().mean(), prog_bar=True)

    def configure_optimizers(self):
        adam = optim.AdamW(self.parameters(), lr=self.o.lr)
        rate = optim.lr_scheduler.OneCycleLR(adam, self.o.lr, int(self.trainer.estimated_stepping_batches))
        return [adam], [{"scheduler": rate, "interval": "step"}]


def main():
    o = parse()
    L.seed_everything(1)
    train_loader = DataLoader(Dates(o.dates, False), batch_size=o.batch_size, shuffle=True, collate_fn=collate)
    val_loader = DataLoader(Dates(o.held_out, True), batch_size=250, collate_fn=collate)

    model = Translator(o)
    trainer = L.Trainer(max_epochs=o.max_epochs, num_sanity_val_steps=0, gradient_clip_val=1.0,
                        default_root_dir="runs/translate", callbacks=[LearningRateMonitor()])
    trainer.fit(model, train_loader, val_loader)
    exact = trainer.validate(model, val_loader)[0]["val_exact"]

    model.eval()
    with torch.inference_mode():
        for i in range(6):
            words = Dates.sample(-6000 + 4321 * i, i)[0]
            print(f"{decode(words):<28} {decode(model.translate(words[None])[0])}")
    print(f"result: exact={exact:.4f} held_out={o.held_out} steps={trainer.global_step}")


if __name__ == "__main__":
    main()
