"""Controllers written by hand, in plain numpy: policies that nobody learned, to be judged like any other.

offing evaluate offing:pendulum --policy examples.controllers:energy_swing_up --out out/swing
offing play --policy examples.controllers:energy_swing_up --env pendulum
"""

from __future__ import annotations

import numpy as np

GRAVITY = 10.0  # of the pendulum; its mass and its length are 1
TORQUE = 2.0  # the most that it takes


def energy_swing_up(obs: np.ndarray) -> np.ndarray:
    """Torques [B, 1] that swing a pendulum up and hold it, from (cos, sin, speed) of its angle [B, 3].

    Upright is the angle 0. A rod that turns about its end has the energy

        E = speed^2 / 6 + 5 cos(angle),    E = 5 at rest upright,    dE/dt = torque * speed

    so a torque along the speed adds energy and one against it takes some away (Astrom & Furuta, 2000). Near enough
    to upright for the torque to win over gravity, a spring and a damper hold it instead.
    """
    cosine, sine, speed = obs.T
    angle = np.arctan2(sine, cosine)
    lacking = GRAVITY / 2 - (speed**2 / 6 + GRAVITY / 2 * cosine)
    along = np.where(speed < 0, -1.0, 1.0)  # at rest, either way will do
    swing = 10.0 * lacking * along
    hold = -15.0 * angle - 3.0 * speed
    near = np.abs(angle + 0.3 * speed) < 0.3
    return np.clip(np.where(near, hold, swing), -TORQUE, TORQUE)[:, None]


def lean(obs: np.ndarray) -> np.ndarray:
    """Pushes [B], 0 left and 1 right, that keep a pole upright on a cart, from its four numbers [B, 4].

    To where the pole will lean a moment from now, by its angle and how fast that changes; and a little against the
    cart's own way, which leads it back to the middle.
    """
    place, pace, angle, turning = obs.T
    return (angle + 0.5 * turning + 0.05 * place + 0.1 * pace > 0).astype(int)
