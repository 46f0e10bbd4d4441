"""The same model with PyTorch and Lightning."""
import argparse
import pathlib

import lightning as L
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import LearningRateMonitor
from tokenizers import ByteLevelBPETokenizer
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset


def parse():
    line = argparse.ArgumentParser(description="Trains a Transformer to predict the next token of a text, and writes a sample.")
    line.add_argument("--text", default="build/data/bible.txt")
    line.add_argument("--vocab-size", type=int, default=0)
    line.add_argument("--width", type=int, default=128)
    line.add_argument("--layers", type=int, default=3)
    line.add_argument("--heads", type=int, default=4)
    line.add_argument("--context", type=int, default=64)
    line.add_argument("--batch-size", type=int, default=16)
    line.add_argument("--lr", type=float, default=3e-3)
    line.add_argument("--sample", type=int, default=400)
    line.add_argument("--temperature", type=float, default=0.8)
    line.add_argument("--max-steps", type=int, default=2800)
    return line.parse_args()


class Tokenizer:
    def __init__(self, text, vocab_size):
        self.pairs, self.alphabet = None, sorted(set(text))
        if vocab_size > 0:
            self.pairs = ByteLevelBPETokenizer()
            self.pairs.train_from_iterator([text], vocab_size=vocab_size)
        self.size = self.pairs.get_vocab_size() if self.pairs else len(self.alphabet)

    def encode(self, text):
        if self.pairs:
            return torch.tensor(self.pairs.encode(text).ids)
        numbers = {c: i for i, c in enumerate(self.alphabet)}
        return torch.tensor([numbers[c] for c in text])

    def decode(self, numbers):
        return self.pairs.decode(numbers) if self.pairs else "".join(self.alphabet[n] for n in numbers)


class Blocks(Dataset):
    def __init__(self, tokens, block, stride):
        self.tokens, self.block, self.stride = tokens, block, stride

    def __len__(self):
        return (len(self.tokens) - self.block - 1) // self.stride + 1

    def __getitem__(self, i):
        part = self.tokens[i * self.stride:i * self.stride + self.block + 1]
        return part[:-1], part[1:]


class Gpt(L.LightningModule):
    def __init__(self, o, tokens, tokens_per_character):
        super().__init__()
        self.o, self.tokens_per_character = o, tokens_per_character
        self.embedding = nn.Embedding(tokens, o.width)
        self.positions = nn.Embedding(o.context, o.width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(o.width, o.heads, 4 * o.width, dropout=0, activation="gelu", batch_first=True,
                                       norm_first=True) for _ in range(o.layers))
        self.norm = nn.LayerNorm(o.width)
        self.head = nn.Linear(o.width, tokens, bias=False)
        self.head.weight = self.embedding.weight
        nn.init.normal_(self.embedding.weight, 0, 0.02)
        nn.init.normal_(self.positions.weight, 0, 0.02)

    def forward(self, x):
        h = self.embedding(x) + self.positions(torch.arange(x.size(1), device=x.device))
        mask = nn.Transformer.generate_square_subsequent_mask(x.size(1), device=x.device, dtype=h.dtype)
        for layer in self.layers:
            h = layer(h, mask, is_causal=True)
        return self.head(self.norm(h))

    def loss(self, batch):
        x, y = batch
        return F.cross_entropy(self(x).flatten(0, 1), y.flatten())

    def training_step(self, batch, index):
        loss = self.loss(batch)
        self.log("train_loss", loss * self.tokens_per_character, prog_bar=True)
        return loss

    def validation_step(self, batch, index):
        self.log("val_loss", self.loss(batch) * self.tokens_per_character, prog_bar=True)

    def configure_optimizers(self):
        adam = optim.AdamW(self.parameters(), lr=self.o.lr, betas=(0.9, 0.95), weight_decay=0.1)
        rate = optim.lr_scheduler.OneCycleLR(adam, self.o.lr, int(self.trainer.estimated_stepping_batches), pct_start=0.1)
        return [adam], [{"scheduler": rate, "interval": "step"}]

    @torch.inference_mode()
    def write(self, text, count, temperature):
        for _ in range(count):
            x = torch.tensor(text[-self.o.context:], device=self.device).unsqueeze(0)
            p = F.softmax(self(x)[0, -1] / temperature, 0)
            text.append(torch.multinomial(p, 1).item())
        return text


def main():
    o = parse()
    L.seed_everything(1)
    text = pathlib.Path(o.text).read_text()
    tokenizer = Tokenizer(text, o.vocab_size)
    tokens = tokenizer.encode(text)
    held_out = len(tokens) // 10
    train, val = Blocks(tokens[:-held_out], o.context, 1), Blocks(tokens[-held_out:], o.context, o.context)

    gpt = Gpt(o, tokenizer.size, len(tokens) / len(text))
    train_loader = DataLoader(train, batch_size=o.batch_size, shuffle=True, drop_last=True)
    val_loader = DataLoader(val, batch_size=4 * o.batch_size)
    trainer = L.Trainer(max_epochs=-1, max_steps=o.max_steps, val_check_interval=700, check_val_every_n_epoch=None,
                        num_sanity_val_steps=0, gradient_clip_val=1.0, default_root_dir="runs/gpt",
                        callbacks=[LearningRateMonitor()])
    trainer.fit(gpt, train_loader, val_loader)
    val_loss = trainer.validate(gpt, val_loader)[0]["val_loss"]

    gpt.eval()
    sample = tokenizer.decode(gpt.write([tokens[0].item()], o.sample, o.temperature))
    (pathlib.Path("runs/gpt") / "sample.txt").write_text(sample)
    print(sample)
    print(f"result: val_loss={val_loss:.4f} steps={trainer.global_step} tokens={tokenizer.size} "
          f"parameters={sum(p.numel() for p in gpt.parameters())}")


if __name__ == "__main__":
    main()
