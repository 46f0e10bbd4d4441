import lightning as L
import torch
import torch.nn.functional as F
from peer import Losses, formula
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Encoder(nn.Module):
    def __init__(self, inputs, latent):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, 32), nn.Tanh())
        self.mean = nn.Linear(32, latent)
        self.logvar = nn.Linear(32, latent)

    def forward(self, x):
        h = self.body(x)
        return self.mean(h), self.logvar(h)


class VAE(L.LightningModule):
    def __init__(self, inputs, latent):
        super().__init__()
        self.encoder = Encoder(inputs, latent)
        self.decoder = nn.Sequential(nn.Linear(latent, 32), nn.Tanh(), nn.Linear(32, inputs))

    def training_step(self, batch, index):
        x, noise = batch
        mean, logvar = self.encoder(x)
        z = mean + noise * torch.exp(0.5 * logvar)
        reconstruction = F.binary_cross_entropy_with_logits(self.decoder(z), x, reduction="sum") / len(x)
        kl = -0.5 * (1 + logvar - mean**2 - logvar.exp()).sum(1).mean()
        self.log_dict({"reconstruction": reconstruction, "kl": kl})
        return reconstruction + kl

    def predict_step(self, batch, index):
        return torch.sigmoid(self.decoder(self.encoder(batch[0])[0]))

    def configure_optimizers(self):
        return optim.Adam(self.parameters(), lr=3e-3)


def main(losses, **options):
    data = TensorDataset((formula(64, 49, salt=5) > 0).float(), formula(64, 4, salt=6))
    loader, vae = DataLoader(data, batch_size=16), VAE(49, 4)
    trainer = L.Trainer(max_epochs=5, callbacks=[losses], **options)
    trainer.fit(vae, loader)
    images = torch.cat(trainer.predict(vae, loader))
    return {**trainer.callback_metrics, "predicted": images.mean()}
