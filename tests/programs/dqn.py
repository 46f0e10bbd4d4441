import copy

import lightning as L
import torch
import torch.nn.functional as F
from peer import Losses, formula
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class DQN(L.LightningModule):
    def __init__(self, gamma=0.9, sync_every=5):
        super().__init__()
        self.automatic_optimization = False
        self.gamma, self.sync_every = gamma, sync_every
        self.q = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
        self.target = copy.deepcopy(self.q).requires_grad_(False)

    def training_step(self, batch, index):
        state, action, reward, following, done = batch
        optimizer = self.optimizers()
        if self.global_step % self.sync_every == 0:
            self.target.load_state_dict(self.q.state_dict())
        values = self.q(state).gather(1, action.unsqueeze(1)).squeeze(1)
        with torch.no_grad():
            best = self.q(following).argmax(1, keepdim=True)  # double DQN
            goal = reward + self.gamma * self.target(following).gather(1, best).squeeze(1) * (~done)
        loss = F.mse_loss(values, goal)
        optimizer.zero_grad()
        self.manual_backward(loss)
        self.clip_gradients(optimizer, gradient_clip_val=1.0, gradient_clip_algorithm="norm")
        optimizer.step()
        self.log("loss", loss, prog_bar=True)
        return loss

    def configure_optimizers(self):
        return optim.RMSprop(self.q.parameters(), lr=1e-3)


def main(losses, **options):
    state, following = formula(64, 4, salt=1), formula(64, 4, salt=2)
    data = TensorDataset(state, (state[:, 0] > 0).long(), formula(64, salt=3), following, following[:, 2] > 0.9)
    trainer = L.Trainer(max_epochs=5, callbacks=[losses], **options)
    trainer.fit(DQN(), DataLoader(data, batch_size=16))
    return trainer.callback_metrics
