"""Settings that every training has, whatever is trained."""

from typing import Literal

from pydantic import Field, NonNegativeFloat, PositiveFloat

from qanet.settings import Count, PositiveCount, Rate, Section

Decay = Literal["constant", "cosine", "linear", "trapezoid"]
Optimizer = Literal["adam", "adamw", "adamax", "adadelta"]


class LearningConfig(Section):
    """How a model is trained, whatever it is.

    Attributes:
        steps: optimizer steps.
        learning_rate: the rate after warm-up.
        warmup_steps: steps until the full rate.
        warmup: shape of the warm-up; `logarithmic` is how reproductions read the
            paper's "inverse exponential" rise (the authors' code has
            0.01^(1 - step / warmup_steps)).
        decay: after warm-up, keep the rate (`constant`), let it fall to zero along a
            `cosine` or on a straight line over all steps, those of the warm-up
            included (`linear`), or keep it and let it fall to zero on a straight line
            over the last quarter of the steps (`trapezoid`).
        optimizer: `adam`, `adamw`, `adamax` or `adadelta`.
        beta_1: decay of Adam's first moment.
        beta_2: decay of Adam's second moment, or of Adadelta's averages (rho).
        epsilon: what the optimizer adds to what it divides by; Adadelta adds it under
            both of its roots.
        weight_decay: decay of the matrices under `adamw`, as a part of the rate
            (Loshchilov and Hutter, 2019); beside it `l2` is usually set to 0.
        clip_norm: upper bound of the gradient's global norm.
        l2: weight of the L2 penalty on matrices (not on biases and norm scales).
        ema_decay: decay of the exponential moving average of the weights, which
            serves every evaluation; ramped up as (1 + step) / (10 + step), which comes
            to 0.999 at step 9,000 and to 0.9999 at step 90,000.
        evaluate_every: steps between evaluations.
        checkpoint_every: steps between checkpoints; evaluations and stops have one too.
        patience: evaluations without a better score after which training stops; 0
            never.
        seed: fixes initial weights, order of examples, and dropout.
    """

    steps: PositiveCount = 60_000
    learning_rate: PositiveFloat = 1e-3
    warmup_steps: Count = 1000
    warmup: Literal["linear", "logarithmic"] = "linear"
    decay: Decay = "cosine"
    optimizer: Optimizer = "adam"
    beta_1: Rate = 0.8
    beta_2: Rate = 0.999
    epsilon: PositiveFloat = 1e-7
    weight_decay: NonNegativeFloat = 0.01
    clip_norm: PositiveFloat = 5.0
    l2: NonNegativeFloat = 3e-7
    ema_decay: Rate = 0.9999
    evaluate_every: PositiveCount = 1000
    checkpoint_every: PositiveCount = 1000
    patience: Count = 0
    seed: int = Field(default=42, ge=0, lt=2**32)


class DistributionConfig(Section):
    """Where the training is computed; see docs/accelerators.md.

    Attributes:
        strategy: `none` computes on one device, `mirrored` on all devices of this
            machine, `cores` on each core of its processor, `multi_worker` on several
            machines and `tpu` on TPU cores (the last three with TensorFlow; on JAX the
            cores of a TPU are devices for `mirrored`).
    """

    strategy: Literal["none", "mirrored", "cores", "multi_worker", "tpu"] = "none"
