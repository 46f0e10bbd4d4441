"""The nets of bench/compare/nets.h, with their parameter names."""
import torch
import torch.nn.functional as F
from torch import nn


def mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


def lenet():
    return nn.Sequential(nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 5), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Flatten(), nn.Linear(800, 128), nn.ReLU(), nn.Linear(128, 10))


def cnn():
    return nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10))


def generator():
    return nn.Sequential(nn.ConvTranspose2d(100, 256, 7, bias=False), nn.BatchNorm2d(256), nn.ReLU(True),
                         nn.ConvTranspose2d(256, 128, 4, 2, 1, bias=False), nn.BatchNorm2d(128), nn.ReLU(True),
                         nn.ConvTranspose2d(128, 1, 4, 2, 1), nn.Tanh())


def discriminator():
    return nn.Sequential(nn.Conv2d(1, 64, 4, 2, 1), nn.LeakyReLU(0.2, True), nn.Conv2d(64, 128, 4, 2, 1, bias=False),
                         nn.BatchNorm2d(128), nn.LeakyReLU(0.2, True), nn.Flatten(), nn.Linear(128 * 49, 1))


class ResidualBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut = None
        if inputs != outputs or stride != 1:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)), inplace=True)))
        return F.relu(y + (x if self.shortcut is None else self.shortcut(x)), inplace=True)


def resnet18():
    shapes = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1)]
    return nn.Sequential(nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(True),
                         *[ResidualBlock(*s) for s in shapes], nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


class AttentionBlock(nn.Module):
    def __init__(self, width, heads, causal):
        super().__init__()
        self.l1, self.l2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.o = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.m = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.heads, self.causal = heads, causal

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.l1(x)).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.o(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.m(self.l2(x))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.te, self.pe = nn.Embedding(256, 192), nn.Embedding(128, 192)
        self.b = nn.Sequential(*[AttentionBlock(192, 6, True) for _ in range(4)])
        self.n, self.h = nn.LayerNorm(192), nn.Linear(192, 256, bias=False)

    def forward(self, i):
        return self.h(self.n(self.b(self.te(i) + self.pe(torch.arange(i.shape[1])))))


class Vit(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Conv2d(3, 192, 4, 4)
        self.positions = nn.Parameter(0.02 * torch.randn(1, 64, 192))
        self.b = nn.Sequential(*[AttentionBlock(192, 3, False) for _ in range(12)])
        self.n, self.h = nn.LayerNorm(192), nn.Linear(192, 10)

    def forward(self, x):
        return self.h(self.n(self.b(self.embedding(x).flatten(2).transpose(1, 2) + self.positions)).mean(1))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.r, self.h = nn.Embedding(256, 256), nn.LSTM(256, 256, 2, batch_first=True), nn.Linear(256, 256)

    def forward(self, i):
        return self.h(self.r(self.e(i))[0])


# Each net with the shape of its input and its number of classes, which for (B, T) is also the number of tokens.
SUPERVISED = {
    "mlp": (mlp, (128, 1, 28, 28), 10), "lenet": (lenet, (128, 1, 28, 28), 10), "cnn": (cnn, (128, 1, 28, 28), 10),
    "resnet18": (resnet18, (32, 3, 32, 32), 10), "vit": (Vit, (32, 3, 32, 32), 10),
    "gpt": (Gpt, (8, 128), 256), "lstm": (Recurrent, (32, 64), 256),
}
