"""Three things that move: a lander, a ferry, and the turbines of a wind farm."""

from __future__ import annotations

import numpy as np

from .task import Act, Amounts, Choices, Moved, State, Task, never


class Lander(Task):
    """Comes down on four choices of thrust: a soft landing pays and ends, a crash costs and ends."""

    name = "lander"
    kinds = ("goal", "limit", "few values", "discrete")
    why = "both ends of an episode decide what it earns; a radar shows 0 and 1, and every burn costs"
    horizon = 120
    columns = ("x", "y", "speed_x", "speed_y", "angle", "turning", "near", "level")
    actions = Choices(4)

    def start(self, rng: np.random.Generator, episodes: int) -> State:
        drawn = {"x": rng.uniform(-3, 3, episodes), "y": rng.uniform(8, 11, episodes)}
        drawn |= {"speed_x": rng.normal(0, 0.1, episodes), "speed_y": rng.uniform(-0.2, 0, episodes)}
        return {**drawn, "angle": rng.normal(0, 0.1, episodes), "turning": np.zeros(episodes)}

    def step(self, state: State, action: np.ndarray, rng: np.random.Generator) -> Moved:
        main, side = (action == 2).astype(float), (action == 3) * 1.0 - (action == 1)
        turning = 0.9 * state["turning"] + 0.03 * side + 0.002 * rng.normal(size=len(action))
        angle = np.clip(state["angle"] + turning, -2, 2)
        speed_x = state["speed_x"] + 0.1 * main * np.sin(angle) + 0.005 * rng.normal(size=len(action))
        speed_y = state["speed_y"] - 0.03 + 0.1 * main * np.cos(angle)
        x, y = state["x"] + speed_x, state["y"] + speed_y
        down, away = y <= 0, (np.abs(x) > 8) | (y > 14)
        soft = down & (speed_y > -0.35) & (np.abs(angle) < 0.35) & (np.abs(speed_x) < 0.3)
        reward = np.where(down & soft, 100 - 8 * np.abs(x), np.where(down | away, -100.0, 0.0)) - 0.3 * main - 0.05
        after = {"x": x, "y": np.maximum(y, 0), "speed_x": speed_x, "speed_y": speed_y, "angle": angle}
        return Moved({**after, "turning": turning}, reward, down | away)

    def observe(self, state: State) -> np.ndarray:
        flags = [(state["y"] < 2) * 1.0, (np.abs(state["angle"]) < 0.2) * 1.0]
        return np.stack([*(state[name] for name in self.columns[:6]), *flags], 1)

    def scripts(self) -> dict[str, Act]:
        def steer(fall: float, home: float, brake: bool = True) -> Act:
            def act(obs: np.ndarray) -> np.ndarray:
                x, y, vx, vy, angle, turning = np.asarray(obs, float)[:, :6].T
                lean = np.clip(-home * x - 6 * home * vx, -0.3, 0.3)
                off = lean - angle - 4 * turning
                burn = brake & (vy < -0.1 - fall * y)
                turn = np.where(off > 0.08, 3, np.where(off < -0.08, 1, 0))
                return np.where(burn & (np.abs(angle) < 0.6), 2, turn)

            return act

        return {
            "land": steer(0.05, 0.15),
            "land_slowly": steer(0.01, 0.15),
            "land_fast": steer(0.12, 0.15),
            "land_anywhere": steer(0.05, 0.0),
            "upright": steer(0.0, 0.0, brake=False),
            "burn": self.constant(2),
            "fall": self.constant(0),
        }


class Ferry(Task):
    """Crosses a river with an eddying current, round an island, to a dock; its logs hardly ever got there."""

    name = "ferry"
    kinds = ("nothing good", "walls", "goal", "two columns", "continuous", "deterministic and rough")
    why = "nothing in the log is any good: hardly an episode, or none, has seen what the goal pays"
    horizon = 60
    columns = ("x", "y")
    actions = Amounts((-1.0, -1.0), (1.0, 1.0))
    behaviours = (0.0, 0.07, 0.2, 0.4)

    def start(self, rng: np.random.Generator, episodes: int) -> State:
        return {"x": rng.uniform(0, 1, episodes), "y": rng.uniform(0, 0.5, episodes)}

    def step(self, state: State, action: np.ndarray, rng: np.random.Generator) -> Moved:
        x, y, push = state["x"], state["y"], np.clip(action, -1, 1)
        stream = 0.25 * np.sin(np.pi * y / 5) * (1 + 0.5 * np.sin(3 * x) * np.cos(4 * y))
        to_x = np.clip(x - stream + 0.35 * push[:, 0], -5, 5)
        to_y = np.clip(y + 0.25 * push[:, 1] + 0.1 * np.sin(2 * x), 0, 5)
        blocked = (np.abs(to_x - 0.5) < 1.5) & (np.abs(to_y - 2.5) < 0.5)
        x, y = np.where(blocked, x, to_x), np.where(blocked, y, to_y)
        ended = (y > 4.5) & (np.abs(x - 3) < 0.7)
        reward = 50.0 * ended - 0.1 - 0.1 * (push**2).sum(1) - 0.2 * blocked
        return Moved({"x": x, "y": y}, reward, ended)

    def scripts(self) -> dict[str, Act]:
        x, y = (lambda obs: self.column(obs, "x")), (lambda obs: self.column(obs, "y"))
        return {
            "round": lambda obs: self.amounts(1.5 * (3.2 - x(obs)), np.where(x(obs) > 2.2, 1.0, 0.0)),
            "straight": lambda obs: self.amounts(0 * x(obs) + 0.7, 1.0 + 0 * y(obs)),
            "upstream": self.constant(1.0, 0.3),
            "across": self.constant(0.0, 1.0),
            "downstream": self.constant(-1.0, 0.5),
            "bank": lambda obs: self.amounts(np.sin(3 * x(obs)), -y(obs)),
            "drift": self.constant(0.0, 0.0),
        }


class WindFarm(Task):
    """Three rows of turbines that face the wind, or on purpose a little aside, to keep their wake off the next."""

    name = "windfarm"
    kinds = ("many columns", "constant and collinear", "exogenous", "noise by state", "continuous")
    why = "sixty columns of which a handful matter, most of them readings of the same few things"
    horizon = 48
    columns = tuple(
        [f"{what}_{i:02}" for what in ("wind", "power", "off", "shake") for i in range(12)]
        + [
            "yaw_1",
            "yaw_2",
            "yaw_3",
            "from",
            "speed",
            "gust",
            "density",
            "warmth",
            "day_sin",
            "day_cos",
            "mast",
            "site",
        ]
    )
    actions = Amounts((-1.0, -1.0, -1.0), (1.0, 1.0, 1.0))

    def start(self, rng: np.random.Generator, episodes: int) -> State:
        state = {"yaw": rng.normal(0, 15, (episodes, 3)), "from": rng.normal(0, 8, episodes)}
        state |= {"speed": rng.uniform(7, 11, episodes), "hour": rng.integers(0, 24, episodes).astype(float)}
        return {**state, "warmth": rng.normal(12, 4, episodes), **self._read(state, rng)}

    def step(self, state: State, action: np.ndarray, rng: np.random.Generator) -> Moved:
        n, turned = len(action), 6 * np.clip(action, -1, 1)
        after = {
            "yaw": np.clip(state["yaw"] + turned, -60, 60),
            "from": 0.95 * state["from"] + rng.normal(0, 2.5, n),
            "speed": np.clip(9 + 0.95 * (state["speed"] - 9) + rng.normal(0, 0.4, n), 3, 16),
            "hour": (state["hour"] + 1) % 24,
            "warmth": 0.9 * state["warmth"] + 1.2 + rng.normal(0, 0.5, n),
        }
        after |= self._read(after, rng)
        reward = after["power"].sum(1) / 1000 - 0.002 * np.abs(turned).sum(1)
        return Moved(after, reward, never(reward))

    def _read(self, state: State, rng: np.random.Generator) -> State:
        """What twelve turbines, four to a row, feel, give and read off; wakes weaken what is behind."""
        n, off = len(state["from"]), state["yaw"] - state["from"][:, None]
        wake = 0.3 * np.exp(-((off[:, :2] / 18) ** 2))  # [N, 2]  of rows one and two on the next
        felt = state["speed"][:, None] * np.concatenate([np.ones((n, 1)), 1 - wake], 1)
        wind = np.repeat(felt, 4, 1) * (1 + 0.05 * rng.normal(size=(n, 12)))
        aside = np.repeat(off, 4, 1)
        power = np.minimum(0.6 * wind**3, 900) * np.cos(np.deg2rad(np.clip(aside, -80, 80))) ** 1.9
        shake = 0.1 * wind * (1 + np.abs(aside) / 20) * np.exp(0.3 * rng.normal(size=(n, 12)))
        reading = aside + rng.normal(0, 1.5, (n, 12))
        return {"wind": wind, "power": power, "off": reading, "shake": shake, "gust": wind.max(1)}

    def observe(self, state: State) -> np.ndarray:
        clock, density = state["hour"] / 12 * np.pi, 1.29 - 0.0045 * state["warmth"]
        wide = [state[name] for name in ("wind", "power", "off", "shake", "yaw")]
        rest = [
            state["from"],
            state["speed"],
            state["gust"],
            density,
            state["warmth"],
            np.sin(clock),
            np.cos(clock),
        ]
        return np.concatenate([*wide, np.stack([*rest, 1.04 * state["speed"], np.full(len(clock), 3.0)], 1)], 1)

    def scripts(self) -> dict[str, Act]:
        def face(quick: float, *aside: float) -> Act:
            def act(obs: np.ndarray) -> np.ndarray:
                yaws = [self.column(obs, f"yaw_{row}") for row in (1, 2, 3)]
                off = [self.column(obs, "from") + a - yaw for a, yaw in zip(aside, yaws, strict=True)]
                return self.amounts(*(quick * part for part in off))

            return act

        return {
            "steer": face(0.15, 20, 20, 0),
            "face": face(0.15, 0, 0, 0),
            "face_slowly": face(0.02, 0, 0, 0),
            "aside": face(0.15, 40, 40, 40),
            "back": face(-0.1, 0, 0, 0),
            "spin": self.constant(1.0, 1.0, 1.0),
            "still": self.constant(0.0, 0.0, 0.0),
        }
