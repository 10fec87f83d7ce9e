"""Small models that are not in the corpus, of kinds that people train. MODELS: name -> function that makes
(module, inputs) or (module, inputs, dynamic_shapes); those with one 0-dim output are trained on it."""
import torch
import torch.nn as nn
import torch.nn.functional as F

MODELS = {}


def model(make):
    MODELS[make.__name__] = make
    return make


class Step(nn.Module):
    """Parts by name and a function of (parts, *inputs)."""

    def __init__(self, step, **parts):
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)
        self.step = step

    def forward(self, *inputs):
        return self.step(self, *inputs)


@model
def convnext():
    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.depthwise = nn.Conv2d(width, width, 7, padding=3, groups=width)
            self.norm = nn.LayerNorm(width)
            self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.scale = nn.Parameter(torch.full((width,), 0.1))

        def forward(self, x):
            y = self.depthwise(x).permute(0, 2, 3, 1)
            y = self.narrow(F.gelu(self.widen(self.norm(y)))) * self.scale
            return x + y.permute(0, 3, 1, 2)

    net = nn.Sequential(nn.Conv2d(3, 8, 4, 4), Block(8), Block(8))
    return (Step(lambda m, x, label: F.cross_entropy(m.head(m.net(x).mean((-1, -2))), label), net=net, head=nn.Linear(8, 5)),
            (torch.randn(2, 3, 32, 32), torch.tensor([1, 3])))


@model
def recurrent():
    return (Step(lambda m, x, y: F.mse_loss(m.head(m.rnn(x)[0][:, -1]), y),
                 rnn=nn.GRU(6, 10, 2, batch_first=True), head=nn.Linear(10, 3)),
            (torch.randn(4, 7, 6), torch.randn(4, 3)))


@model
def transformer_encoder():
    layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True, norm_first=True)

    def step(m, tokens):
        mask = torch.triu(torch.full((9, 9), float("-inf")), 1)
        scores = m.head(m.encoder(m.embed(tokens), mask=mask, is_causal=True))
        return F.nll_loss(F.log_softmax(scores[:, :-1].flatten(0, 1), -1), tokens[:, 1:].flatten())

    return (Step(step, embed=nn.Embedding(20, 16), head=nn.Linear(16, 20),
                 encoder=nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)), (torch.randint(0, 20, (2, 9)),))


@model
def variational_autoencoder():
    def step(m, x, noise):
        hidden = torch.tanh(m.encode(x))
        mean, log_variance = m.mean(hidden), m.log_variance(hidden).clamp(-4, 4)
        made = torch.sigmoid(m.decode(mean + noise * torch.exp(0.5 * log_variance)))
        divergence = -0.5 * torch.sum(1 + log_variance - mean.pow(2) - log_variance.exp())
        return F.binary_cross_entropy(made, x, reduction="sum") + divergence

    decode = nn.Sequential(nn.Linear(3, 8), nn.ELU(), nn.Linear(8, 12))
    return (Step(step, encode=nn.Linear(12, 8), mean=nn.Linear(8, 3), log_variance=nn.Linear(8, 3), decode=decode),
            (torch.rand(5, 12), torch.randn(5, 3)))


@model
def generator():
    net = nn.Sequential(nn.ConvTranspose2d(6, 8, 4, 1, 0, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
                        nn.ConvTranspose2d(8, 4, 4, 2, 1, bias=False), nn.BatchNorm2d(4), nn.LeakyReLU(0.2),
                        nn.ConvTranspose2d(4, 3, 4, 2, 1), nn.Tanh())
    return Step(lambda m, z: m.net(z).square().mean(), net=net), (torch.randn(3, 6, 1, 1),)


@model
def mixture_of_experts():
    def step(m, x):
        weight, chosen = F.softmax(m.router(x), -1).topk(2, -1)
        made = torch.einsum("nkij,nj->nki", m.experts[chosen], x)
        return (made * (weight / weight.sum(-1, keepdim=True)).unsqueeze(-1)).sum(1).square().sum()

    return (Step(step, router=nn.Linear(8, 4), experts=nn.Parameter(torch.randn(4, 8, 8) * 0.3)), (torch.randn(6, 8),))


@model
def graph_network():
    def step(m, x, source, target):
        hidden = m.first(x)
        sums = torch.zeros_like(hidden).index_add(0, target, hidden[source])
        degree = torch.zeros(x.shape[0]).scatter_add(0, target, torch.ones_like(target, dtype=torch.float)).clamp(min=1)
        return m.second(F.relu(sums / degree[:, None])).logsumexp(-1).mean()

    return (Step(step, first=nn.Linear(5, 7), second=nn.Linear(7, 2)),
            (torch.randn(9, 5), torch.randint(0, 9, (20,)), torch.randint(0, 9, (20,))))


@model
def volumes():
    def step(m, x):
        fine = F.relu(m.norm(m.down(x)))
        coarse = F.relu(m.wide(F.max_pool3d(fine, 2)))
        return F.softmax(m.out(torch.cat([fine, m.up(coarse)], 1)), 1)[:, 0].mean()

    return (Step(step, down=nn.Conv3d(1, 4, 3, padding=1), norm=nn.InstanceNorm3d(4, affine=True),
                 wide=nn.Conv3d(4, 8, 3, padding=1), up=nn.ConvTranspose3d(8, 4, 2, 2), out=nn.Conv3d(8, 2, 1)),
            (torch.randn(1, 1, 8, 8, 8),))


@model
def signal():
    def step(m, x):
        y = F.hardswish(m.depthwise(F.silu(m.norm(m.conv(x)))))
        return F.adaptive_avg_pool1d(y, 1).squeeze(-1), m.head(F.avg_pool1d(y, 4, 2).amax(-1))

    return (Step(step, conv=nn.Conv1d(2, 6, 5, stride=2, dilation=2, padding=4), norm=nn.GroupNorm(3, 6),
                 depthwise=nn.Conv1d(6, 6, 3, groups=6, padding="same"), head=nn.Linear(6, 2)), (torch.randn(3, 2, 40),))


@model
def relative_attention():
    def step(m, x):
        q, k, v = m.project(x).view(2, 8, 3, 3, 4).permute(2, 0, 3, 1, 4)
        distance = torch.arange(8)[:, None] - torch.arange(8)[None] + 7
        scores = (q @ k.transpose(-1, -2)) / 2 + m.bias[:, distance]
        scores = scores.masked_fill(torch.ones(8, 8).triu(1).bool(), float("-inf")).softmax(-1)
        return m.out((scores @ v).transpose(1, 2).reshape(2, 8, 12)).pow(2).mean()

    return (Step(step, project=nn.Linear(12, 36, bias=False), bias=nn.Parameter(torch.randn(3, 15) * 0.1),
                 out=nn.Linear(12, 12)), (torch.randn(2, 8, 12),))


@model
def losses():
    def step(m, x, y, label):
        out = m.linear(x)
        ones = torch.ones(5)
        return (F.smooth_l1_loss(out, y) + F.huber_loss(out, y, delta=0.5)
                + F.kl_div(F.log_softmax(out, -1), F.softmax(y, -1), reduction="batchmean")
                + F.cross_entropy(out, label, label_smoothing=0.1, weight=torch.tensor([1.0, 2.0, 0.5, 1.0]))
                + F.cosine_embedding_loss(out, y, ones) + F.margin_ranking_loss(out[:, 0], out[:, 1], ones)
                + F.triplet_margin_loss(out, y, y.flip(0)) + F.poisson_nll_loss(out, y.abs())
                + F.binary_cross_entropy_with_logits(out, y.sigmoid())
                + F.multilabel_soft_margin_loss(out, (y > 0).float()))

    return Step(step, linear=nn.Linear(6, 4)), (torch.randn(5, 6), torch.randn(5, 4), torch.randint(0, 4, (5,)))


@model
def half_precision():
    half = dict(dtype=torch.bfloat16)
    return (Step(lambda m, x: m.second(F.gelu(m.norm(m.first(x)), approximate="tanh")).float().softmax(-1),
                 first=nn.Linear(16, 32, **half), second=nn.Linear(32, 4, **half), norm=nn.LayerNorm(32, **half)),
            (torch.randn(4, 16, **half),))


@model
def spectrum():
    def step(m, x):
        spectrum = torch.fft.rfft(x, dim=-1) * torch.view_as_complex(m.filter)
        return m.linear(torch.fft.irfft(spectrum, n=16, dim=-1)).abs().sum()

    return Step(step, filter=nn.Parameter(torch.randn(9, 2)), linear=nn.Linear(16, 3)), (torch.randn(5, 16),)


@model
def linear_algebra():
    def step(m, x):
        matrix = m.a @ m.a.T + torch.eye(4)
        return (torch.linalg.solve(matrix, m.b).sum() + torch.logdet(matrix)
                + torch.linalg.cholesky(matrix).diagonal().log().sum() + torch.linalg.norm(x @ matrix))

    return (Step(step, a=nn.Parameter(torch.randn(4, 4)), b=nn.Parameter(torch.randn(4, 2))), (torch.randn(3, 4),))


@model
def weight_norm():
    conv = torch.nn.utils.parametrizations.weight_norm(nn.Conv2d(3, 4, 3))
    return (Step(lambda m, x: m.norm(m.slope(m.conv(x))).pow(3).mean()
                 + F.pixel_shuffle(x[:, :1].repeat(1, 4, 1, 1), 2).mean(),
                 conv=conv, slope=nn.PReLU(4), norm=nn.BatchNorm2d(4)), (torch.randn(2, 3, 9, 9),))


@model
def mutation():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(4))
            self.linear = nn.Linear(4, 4)

        def forward(self, x):
            y = self.linear(x)
            y[:, 0].mul_(2)
            y[1] = 0
            self.count.add_(y.detach().mean(0))
            z = y.clone()
            z.view(-1)[::3] += 1
            return z.sum() + (y * self.count).sum()

    return Net(), (torch.randn(3, 4),)


@model
def order_statistics():
    def step(m, x):
        y = m.linear(x)
        value, index = y.sort(-1, descending=True)
        running = value.cumsum(-1)
        return ((running * torch.where(running > 0, running, running.exp())).sum() + y.gather(1, index[:, :3]).prod(-1).sum()
                + y.median(-1).values.sum() + y.cummax(-1).values.mean() + torch.logcumsumexp(y, -1).mean() + y.std()
                + y.var(0, unbiased=False).sum())

    return Step(step, linear=nn.Linear(7, 7)), (torch.randn(4, 7),)


@model
def resampling():
    def step(m, x):
        y = F.interpolate(m.reflect(x), scale_factor=1.5, mode="bilinear", align_corners=False)
        z = F.interpolate(m.wrap(y), size=(5, 7), mode="bicubic", align_corners=True)
        return F.interpolate(z, scale_factor=2, mode="nearest-exact").square().mean() + F.interpolate(
            z, size=(3, 3), mode="area").sum()

    return (Step(step, reflect=nn.Conv2d(2, 3, 3, padding=1, padding_mode="reflect"),
                 wrap=nn.Conv2d(3, 2, 3, padding=1, padding_mode="circular")), (torch.randn(1, 2, 8, 6),))


@model
def spatial_transformer():
    def step(m, x):
        grid = F.affine_grid(m.theta[None].expand(2, -1, -1), (2, 3, 6, 6), align_corners=False)
        sampled = F.grid_sample(x, grid, align_corners=False, padding_mode="reflection")
        blocks = F.fold(F.unfold(x, 2, stride=2), (6, 6), 2, stride=2)
        return sampled.square().sum() + F.unfold(x, 3).mean() + blocks.sum()

    return (Step(step, theta=nn.Parameter(torch.tensor([[1.0, 0.1, 0], [0, 0.9, 0.1]]))), (torch.randn(2, 3, 6, 6),))


@model
def gated_blocks():
    def step(m, x):
        for _ in range(3):
            y = m.norm(x)
            x = x + m.down(F.silu(m.gate(y)) * m.up(y))
        attended = F.scaled_dot_product_attention(x[:, None], x[:, None], x[:, None], is_causal=True)
        return attended.logsumexp((1, 2, 3)).sum(), F.softplus(x).mean(), F.mish(x).sum(), F.glu(x).sum()

    return (Step(step, norm=nn.RMSNorm(10), gate=nn.Linear(10, 20, bias=False), up=nn.Linear(10, 20, bias=False),
                 down=nn.Linear(20, 10, bias=False)), (torch.randn(2, 5, 10),))


@model
def dynamic_sequence():
    def step(m, x):
        batch, length, width = x.shape
        y = m.linear(x.reshape(batch * length, width)).view(batch, length, width)
        y = torch.cat([y, y[:, : length // 2]], 1)
        place = torch.arange(y.shape[1], dtype=torch.float)[None, :, None]
        return (y.softmax(1) * place).sum() / batch, F.pad(y, (1, 1, 0, 2)).amax(1)

    auto = torch.export.Dim.AUTO
    return Step(step, linear=nn.Linear(6, 6)), (torch.randn(3, 8, 6),), {0: auto, 1: auto}


@model
def dynamic_images():
    def step(m, x):
        return m.head(F.max_pool2d(F.relu(m.norm(m.conv(x))), 2).mean((2, 3))).square().mean()

    auto = torch.export.Dim.AUTO
    return (Step(step, conv=nn.Conv2d(3, 4, 3, stride=2, padding=1), norm=nn.BatchNorm2d(4), head=nn.Linear(4, 2)),
            (torch.randn(3, 3, 16, 20),), {0: auto, 2: auto})
