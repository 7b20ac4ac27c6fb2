"""Four tasks of gymnasium, their published dynamics in numpy, each with something that real logs have."""

from __future__ import annotations

import numpy as np

from .task import Act, Amounts, Choices, Moved, State, Task, never


class MountainCar(Task):
    """Gymnasium's MountainCarContinuous-v0, cut at 200 steps: 100 at the flag, and the episode ends there."""

    name = "mountaincar"
    kinds = ("goal", "walls", "two columns", "continuous", "deterministic and rough")
    why = "the only reward is a goal, plans have found nothing where the log's own behaviour earns most of it"
    horizon = 200
    columns = ("position", "velocity")
    actions = Amounts((-1.0,), (1.0,))

    def start(self, rng: np.random.Generator, episodes: int) -> State:
        return {"position": rng.uniform(-0.6, -0.4, episodes), "velocity": np.zeros(episodes)}

    def step(self, state: State, action: np.ndarray, rng: np.random.Generator) -> Moved:
        position, push = state["position"], np.clip(action[:, 0], -1, 1)
        velocity = np.clip(state["velocity"] + 0.0015 * push - 0.0025 * np.cos(3 * position), -0.07, 0.07)
        position = np.clip(position + velocity, -1.2, 0.6)
        velocity = np.where((position == -1.2) & (velocity < 0), 0.0, velocity)
        ended = (position >= 0.45) & (velocity >= 0)
        return Moved({"position": position, "velocity": velocity}, 100.0 * ended - 0.1 * push**2, ended)

    def scripts(self) -> dict[str, Act]:
        speed = lambda obs: self.column(obs, "velocity")
        return {
            "swing": lambda obs: self.amounts(np.where(speed(obs) >= 0, 1.0, -1.0)),
            "swing_softly": lambda obs: self.amounts(0.6 * np.tanh(150 * speed(obs)) + 0.02),
            "swing_left": lambda obs: self.amounts(np.where(speed(obs) < 0, -0.8, 0.2)),
            "against": lambda obs: self.amounts(-np.tanh(60 * speed(obs))),
            "right": self.constant(1.0),
            "idle": self.constant(0.0),
        }


class BlindCartPole(Task):
    """Gymnasium's CartPole-v1, of which a log shows where cart and pole are, and not how fast they move."""

    name = "cartpole_blind"
    kinds = ("hidden velocities", "limit", "two columns", "discrete")
    why = "what comes next is told by the past, not by the row"
    horizon = 200
    columns = ("position", "angle")
    actions = Choices(2)

    def start(self, rng: np.random.Generator, episodes: int) -> State:
        return {name: rng.uniform(-0.05, 0.05, episodes) for name in ("position", "speed", "angle", "turning")}

    def step(self, state: State, action: np.ndarray, rng: np.random.Generator) -> Moved:
        angle, turning = state["angle"], state["turning"]
        force = np.where(action == 1, 10.0, -10.0)
        pushed = (force + 0.05 * turning**2 * np.sin(angle)) / 1.1
        turn = (9.8 * np.sin(angle) - np.cos(angle) * pushed) / (0.5 * (4 / 3 - 0.1 * np.cos(angle) ** 2 / 1.1))
        moved = pushed - 0.05 * turn * np.cos(angle) / 1.1
        after = {
            "position": state["position"] + 0.02 * state["speed"],
            "speed": state["speed"] + 0.02 * moved,
            "angle": angle + 0.02 * turning,
            "turning": turning + 0.02 * turn,
        }
        ended = (np.abs(after["position"]) > 2.4) | (np.abs(after["angle"]) > 12 * 2 * np.pi / 360)
        return Moved(after, np.ones(len(ended)), ended)

    def scripts(self) -> dict[str, Act]:
        place, angle = (lambda obs: self.column(obs, "position")), (lambda obs: self.column(obs, "angle"))
        return {
            "lean": lambda obs: (angle(obs) > 0).astype(int),
            "lean_home": lambda obs: (angle(obs) + 0.05 * place(obs) > 0).astype(int),
            "lean_away": lambda obs: (angle(obs) - 0.1 * place(obs) > 0).astype(int),
            "late": lambda obs: (angle(obs) > 0.05).astype(int),
            "against": lambda obs: (angle(obs) < 0).astype(int),
            "left": self.constant(0),
        }


class PendulumTarget(Task):
    """Gymnasium's Pendulum-v1 with a stronger motor, which is to point where a target jumps to at random."""

    name = "pendulum_target"
    kinds = ("jumps", "paid for what comes", "exogenous", "continuous")
    why = "a column whose every change is chance, and a reward for being near where it went"
    horizon = 100
    columns = ("cos", "sin", "turning", "target")
    jumping = ("target",)
    actions = Amounts((-6.0,), (6.0,))

    def start(self, rng: np.random.Generator, episodes: int) -> State:
        angle, target = rng.uniform(-np.pi, np.pi, episodes), rng.uniform(-2, 2, episodes)
        return {"angle": angle, "turning": rng.uniform(-1, 1, episodes), "target": target}

    def step(self, state: State, action: np.ndarray, rng: np.random.Generator) -> Moved:
        angle, push = state["angle"], np.clip(action[:, 0], -6, 6)
        turning = np.clip(state["turning"] + 0.05 * (15 * np.sin(angle) + 3 * push), -8, 8)
        angle = angle + 0.05 * turning
        jumps, fresh = rng.random(len(angle)) < 0.04, rng.uniform(-2, 2, len(angle))
        target = np.where(jumps, fresh, state["target"])
        off = (angle - target + np.pi) % (2 * np.pi) - np.pi
        reward = -(off**2) - 0.05 * turning**2 - 0.001 * push**2
        return Moved({"angle": angle, "turning": turning, "target": target}, reward, never(reward))

    def observe(self, state: State) -> np.ndarray:
        parts = (np.cos(state["angle"]), np.sin(state["angle"]), state["turning"], state["target"])
        return np.stack(parts, 1)

    def scripts(self) -> dict[str, Act]:
        def towards(stiff: float, damp: float, lift: float) -> Act:
            def act(obs: np.ndarray) -> np.ndarray:
                angle = np.arctan2(self.column(obs, "sin"), self.column(obs, "cos"))
                off = (angle - self.column(obs, "target") + np.pi) % (2 * np.pi) - np.pi
                return self.amounts(-stiff * off - damp * self.column(obs, "turning") - lift * np.sin(angle))

            return act

        return {
            "track": towards(6.0, 1.2, 5.0),
            "track_slowly": towards(2.0, 1.5, 5.0),
            "track_limp": towards(3.0, 0.5, 0.0),
            "stand": lambda obs: self.amounts(-8 * self.column(obs, "sin") - 2 * self.column(obs, "turning")),
            "away": towards(-3.0, 0.0, 0.0),
            "still": self.constant(0.0),
        }


class Acrobot(Task):
    """Gymnasium's Acrobot-v1, cut at 150 steps: -1 until the tip of two links is above the bar."""

    name = "acrobot"
    kinds = ("deterministic and rough", "goal", "discrete")
    why = "chaos without chance: what worlds miss is error, not noise"
    horizon = 150
    columns = ("cos_1", "sin_1", "cos_2", "sin_2", "turning_1", "turning_2")
    actions = Choices(3)

    def start(self, rng: np.random.Generator, episodes: int) -> State:
        return {name: rng.uniform(-0.1, 0.1, episodes) for name in ("one", "two", "turning_1", "turning_2")}

    def step(self, state: State, action: np.ndarray, rng: np.random.Generator) -> Moved:
        x, torque = np.stack([state[k] for k in ("one", "two", "turning_1", "turning_2")]), action - 1.0
        k1 = _acrobot(x, torque)
        k2 = _acrobot(x + 0.1 * k1, torque)
        k3 = _acrobot(x + 0.1 * k2, torque)
        one, two, w1, w2 = x + 0.2 / 6 * (k1 + 2 * k2 + 2 * k3 + _acrobot(x + 0.2 * k3, torque))
        one, two = ((angle + np.pi) % (2 * np.pi) - np.pi for angle in (one, two))
        w1, w2 = np.clip(w1, -4 * np.pi, 4 * np.pi), np.clip(w2, -9 * np.pi, 9 * np.pi)
        ended = -np.cos(one) - np.cos(one + two) > 1
        return Moved({"one": one, "two": two, "turning_1": w1, "turning_2": w2}, ended - 1.0, ended)

    def observe(self, state: State) -> np.ndarray:
        angles = [turned(state[link]) for link in ("one", "two") for turned in (np.cos, np.sin)]
        return np.stack([*angles, state["turning_1"], state["turning_2"]], 1)

    def scripts(self) -> dict[str, Act]:
        first, second = (lambda obs: self.column(obs, "turning_1")), (lambda obs: self.column(obs, "turning_2"))
        return {
            "pump": lambda obs: np.where(second(obs) > 0, 2, 0),
            "pump_back": lambda obs: np.where(first(obs) > 0, 0, 2),
            "pump_lazily": lambda obs: np.where(np.abs(first(obs)) < 0.5, 1, np.where(first(obs) > 0, 0, 2)),
            "pump_forth": lambda obs: np.where(first(obs) > 0, 2, 0),
            "push": self.constant(2),
            "idle": self.constant(1),
        }


def _acrobot(x: np.ndarray, torque: np.ndarray) -> np.ndarray:
    """Change [4, N] of both angles and both speeds: two links of length and mass 1 (Sutton & Barto)."""
    one, two, w1, w2 = x
    d1 = 0.25 + (1 + 0.25 + np.cos(two)) + 2
    d2 = 0.25 + 0.5 * np.cos(two) + 1
    tip = 0.5 * 9.8 * np.cos(one + two - np.pi / 2)
    phi = -0.5 * w2**2 * np.sin(two) - w2 * w1 * np.sin(two) + 1.5 * 9.8 * np.cos(one - np.pi / 2) + tip
    a2 = (torque + d2 / d1 * phi - 0.5 * w1**2 * np.sin(two) - tip) / (0.25 + 1 - d2**2 / d1)
    return np.stack([w1, w2, -(d2 * a2 + phi) / d1, a2])
