import lightning as L
import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset

TEXT = "the quick brown fox jumps over the lazy dog; pack my box with five dozen liquor jugs. " * 4


class Characters(Dataset):
    def __init__(self, text, length):
        self.alphabet = sorted(set(text))
        self.codes = torch.tensor([self.alphabet.index(c) for c in text])
        self.length = length

    def __len__(self):
        return (len(self.codes) - 1) // self.length

    def __getitem__(self, i):
        part = self.codes[i * self.length:(i + 1) * self.length + 1]
        return part[:-1], part[1:]


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        b, t, w = x.shape
        qkv = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, w))
        return x + self.mlp(self.norm2(x))


class LanguageModel(L.LightningModule):
    def __init__(self, symbols, length, width=32):
        super().__init__()
        self.tokens = nn.Embedding(symbols, width)
        self.positions = nn.Embedding(length, width)
        self.blocks = nn.Sequential(*[Block(width, 4) for _ in range(2)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, symbols, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, x):
        x = self.tokens(x) + self.positions(torch.arange(x.shape[1]))
        return self.head(self.norm(self.blocks(x)))

    def training_step(self, batch, index):
        x, y = batch
        loss = F.cross_entropy(self(x).flatten(0, 1), y.flatten())
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def configure_optimizers(self):
        optimizer = optim.AdamW(self.parameters(), lr=3e-3, betas=(0.9, 0.95), weight_decay=0.1)
        warmup = optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 8))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": warmup, "interval": "step"}}


def main(losses, **options):
    data = Characters(TEXT, length=16)
    trainer = L.Trainer(max_steps=20, gradient_clip_val=1.0, callbacks=[losses], **options)
    trainer.fit(LanguageModel(len(data.alphabet), 16), DataLoader(data, batch_size=4))
    return trainer.callback_metrics
