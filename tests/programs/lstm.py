import lightning as L
import torch
import torch.nn.functional as F
from peer import Losses, formula
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class LSTMCell(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.hidden = hidden
        self.x2h = nn.Linear(inputs, 4 * hidden)
        self.h2h = nn.Linear(hidden, 4 * hidden)

    def forward(self, x, state):
        h, c = state
        i, f, g, o = (self.x2h(x) + self.h2h(h)).chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c


class Forecast(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.cell = LSTMCell(2, 16)
        self.out = nn.Linear(16, 1)

    def forward(self, x):
        h = c = x.new_zeros(x.shape[0], self.cell.hidden)
        for t in range(x.shape[1]):
            h, c = self.cell(x[:, t], (h, c))
        return self.out(h).squeeze(1)

    def training_step(self, batch, index):
        x, y = batch
        loss = F.mse_loss(self(x), y)
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def configure_optimizers(self):
        return optim.Adam(self.parameters(), lr=1e-2)


def main(losses, **options):
    x = formula(64, 9, 2, salt=3)
    data = TensorDataset(x, x[:, 0, 0] * x[:, -1, 1])
    trainer = L.Trainer(max_epochs=5, gradient_clip_val=0.5, gradient_clip_algorithm="value", callbacks=[losses], **options)
    trainer.fit(Forecast(), DataLoader(data, batch_size=16))
    return trainer.callback_metrics
