"""Four tasks that were added to the open half after the draw: kinds that it had too little of to learn from.

A sedation (constants of a patient that no column shows, what was given works late, a limit that ends), a river's
reservoir (few long episodes, floods), a docking (a goal and a limit both end), and a culture of algae (orders of
magnitude that grow and are harvested).
"""

from __future__ import annotations

import numpy as np

from .task import Act, Amounts, Choices, Moved, State, Task, never


class Sedation(Task):
    """Keeps a patient asleep: how strongly a drug works on whom no column shows, and it works late."""

    name = "sedation"
    kinds = ("hidden constants", "noise by state", "limit", "coin", "exogenous", "continuous")
    why = "no column shows how a patient takes to the drug, nor what was given and still works; too much ends it"
    horizon = 80
    columns = ("depth", "pressure", "surgery", "minutes")
    actions = Amounts((0.0,), (1.0,))

    def start(self, rng: np.random.Generator, episodes: int) -> State:
        zeros = np.zeros(episodes)
        return {
            "depth": rng.uniform(75, 95, episodes),
            "pressure": rng.normal(95, 5, episodes),
            "surgery": zeros,
            "minutes": zeros,
            "inside": zeros,
            "gain": np.exp(rng.normal(0, 0.35, episodes)),
        }

    def step(self, state: State, action: np.ndarray, rng: np.random.Generator) -> Moved:
        given, n = np.clip(action[:, 0], 0, 1), len(action)
        surgery = (rng.random(n) < np.where(state["surgery"] == 1, 0.85, 0.08)).astype(float)
        inside = 0.8 * state["inside"] + 0.2 * given
        asleep = 95 - 75 * np.tanh(1.6 * state["gain"] * inside) + 12 * surgery
        depth = state["depth"] + 0.35 * (asleep - state["depth"])
        depth = depth + (0.5 + 0.03 * np.abs(95 - depth)) * rng.normal(size=n)
        pressure = state["pressure"] + 0.3 * (100 - 45 * state["gain"] * inside - state["pressure"] + 8 * surgery)
        pressure = pressure + rng.normal(0, 1.0, n)
        ended = pressure < 55
        reward = 1.0 - np.minimum(np.abs(depth - 50) / 15, 2.5) - 0.2 * given - 30.0 * ended
        after = {"depth": depth, "pressure": pressure, "surgery": surgery, "inside": inside, "gain": state["gain"]}
        return Moved(after | {"minutes": state["minutes"] + 1}, reward, ended)

    def scripts(self) -> dict[str, Act]:
        depth = lambda obs: self.column(obs, "depth")
        pressure = lambda obs: self.column(obs, "pressure")
        return {
            "steady": lambda obs: self.amounts(
                0.45 + (depth(obs) - 50) / 60 + np.minimum(pressure(obs) - 68, 0) / 20
            ),
            "firm": lambda obs: self.amounts(0.4 + (depth(obs) - 50) / 30),
            "deep": lambda obs: self.amounts(0.6 + (depth(obs) - 30) / 40),
            "light": lambda obs: self.amounts(0.2 + (depth(obs) - 70) / 60),
            "backwards": lambda obs: self.amounts(0.5 - (depth(obs) - 50) / 50),
            "half": self.constant(0.5),
            "none": self.constant(0.0),
        }


class Reservoir(Task):
    """Lets water go for power at a price; inflow is little on most days and a flood on some."""

    name = "reservoir"
    kinds = (
        "heavy tails",
        "exogenous",
        "few long",
        "paid for what comes",
        "walls",
        "constant and collinear",
        "discrete",
    )
    why = "few long episodes; most days are alike and a few decide what a year earns"
    horizon = 240
    columns = ("level", "inflow", "snow", "season_sin", "season_cos", "price", "spill", "head")
    actions = Choices(5)

    def start(self, rng: np.random.Generator, episodes: int) -> State:
        day = rng.integers(0, 240, episodes).astype(float)
        return {
            "level": rng.uniform(30, 60, episodes),
            "inflow": np.full(episodes, 2.0),
            "snow": rng.uniform(0, 40, episodes),
            "day": day,
            "price": np.ones(episodes),
            "spill": np.zeros(episodes),
        }

    def step(self, state: State, action: np.ndarray, rng: np.random.Generator) -> Moved:
        n, wanted = len(action), 1.5 * action.astype(float)
        season = 2 * np.pi * (state["day"] + 1) / 240
        warm = np.sin(season)
        fallen = np.where(rng.random(n) < 0.15, 3.0 * rng.pareto(2.2, n), 0.0)
        melt = np.clip(0.04 * (1 + warm), 0, 1) * state["snow"]
        snow = np.maximum(state["snow"] - melt + np.where(warm < 0, fallen, 0.0), 0)
        inflow = 0.5 * state["inflow"] + 0.5 * (1.0 + melt + np.where(warm >= 0, fallen, 0.0))
        let = np.minimum(wanted, state["level"] + inflow)
        level = state["level"] + inflow - let
        spill = np.maximum(level - 100, 0)
        level = np.minimum(level, 100)
        price = 1 + 0.8 * (state["price"] - 1) + 0.15 * rng.normal(size=n) - 0.05 * warm
        earned = 0.04 * let * np.clip(state["price"], 0.1, 3) * (0.3 + level / 100)
        reward = earned - 0.2 * spill - 0.1 * (level < 10)
        after = {
            "level": level,
            "inflow": inflow,
            "snow": snow,
            "day": state["day"] + 1,
            "price": price,
            "spill": spill,
        }
        return Moved(after, reward, never(reward))

    def observe(self, state: State) -> np.ndarray:
        season = 2 * np.pi * state["day"] / 240
        shown = [state["level"], state["inflow"], state["snow"], np.sin(season), np.cos(season), state["price"]]
        return np.stack([*shown, state["spill"], 0.3 + state["level"] / 100], 1)

    def scripts(self) -> dict[str, Act]:
        level, price = (lambda obs: self.column(obs, "level")), (lambda obs: self.column(obs, "price"))
        inflow = lambda obs: self.column(obs, "inflow")
        rung = lambda at: np.clip(np.round(at), 0, 4).astype(int)
        return {
            "full_and_dear": lambda obs: rung((level(obs) - 70) / 8 + 3 * (price(obs) - 1) + inflow(obs) / 3),
            "full": lambda obs: rung((level(obs) - 70) / 10 + inflow(obs) / 3),
            "half_full": lambda obs: rung((level(obs) - 45) / 8),
            "as_it_comes": lambda obs: rung(inflow(obs) / 1.5),
            "upside_down": lambda obs: rung((50 - level(obs)) / 8),
            "open": self.constant(4),
            "shut": self.constant(0),
        }


class Docking(Task):
    """Four thrusters bring a craft to a port; to touch it slowly pays and ends, to hit it hard costs and ends."""

    name = "docking"
    kinds = ("goal", "limit", "few values", "discrete")
    why = "both ends decide what an episode earns, and they lie side by side"
    horizon = 100
    columns = ("x", "y", "vx", "vy", "near", "fuel")
    actions = Choices(5)

    def start(self, rng: np.random.Generator, episodes: int) -> State:
        return {
            "x": rng.uniform(4, 8, episodes),
            "y": rng.uniform(-3, 3, episodes),
            "vx": rng.normal(0, 0.05, episodes),
            "vy": rng.normal(0, 0.05, episodes),
            "near": np.zeros(episodes),
            "fuel": np.full(episodes, 30.0),
        }

    def step(self, state: State, action: np.ndarray, rng: np.random.Generator) -> Moved:
        n, able = len(action), (state["fuel"] > 0).astype(float)
        push = np.array([[0.0, 0.0], [-1, 0], [1, 0], [0, -1], [0, 1]])[action] * able[:, None]
        vx = state["vx"] + 0.05 * push[:, 0] + rng.normal(0, 0.003, n)
        vy = state["vy"] + 0.05 * push[:, 1] + rng.normal(0, 0.003, n)
        x, y = state["x"] + vx, state["y"] + vy
        fuel = np.maximum(state["fuel"] - np.abs(push).sum(1), 0)
        there, speed = x < 0, np.hypot(vx, vy)
        good = there & (np.abs(y) < 0.7) & (speed < 0.3)
        lost = (np.abs(y) > 6) | (x > 12)
        ended = there | lost
        near = (x < 2).astype(float)
        reward = 50.0 * good - 25.0 * (ended & ~good) - 0.1 * np.abs(push).sum(1) - 0.05
        return Moved({"x": x, "y": y, "vx": vx, "vy": vy, "near": near, "fuel": fuel}, reward, ended)

    def scripts(self) -> dict[str, Act]:
        def towards(speed: float, stiff: float, care: float = 1.0) -> Act:
            def act(obs: np.ndarray) -> np.ndarray:
                x, y, vx, vy = (self.column(obs, name) for name in ("x", "y", "vx", "vy"))
                off_x = -np.minimum(speed, 0.05 + 0.08 * care * x) - vx
                off_y = np.clip(-stiff * y, -0.15, 0.15) - vy
                along = np.where(off_x < -0.03, 1, np.where(off_x > 0.03, 2, 0))
                across = np.where(off_y < -0.03, 3, np.where(off_y > 0.03, 4, 0))
                return np.where(np.abs(off_y) > np.abs(off_x), across, along)

            return act

        return {
            "careful": towards(0.2, 0.15),
            "brisk": towards(0.28, 0.12, 2.0),
            "slow": towards(0.1, 0.1),
            "reckless": towards(0.6, 0.1, 9.0),
            "sideways": towards(0.2, -0.05),
            "ahead": self.constant(1),
            "drift": self.constant(0),
        }


class Algae(Task):
    """Feeds and harvests a culture that grows over orders of magnitude; how fast, no column shows."""

    name = "algae"
    kinds = (
        "orders of magnitude",
        "noise by state",
        "hidden constants",
        "exogenous",
        "paid for what comes",
        "continuous",
    )
    why = "counts from a hundred to ten million, whose chance grows with them, and light that nobody sets"
    horizon = 60
    columns = ("cells", "food", "light", "hour")
    actions = Amounts((0.0, 0.0), (1.0, 1.0))
    wide = ("cells", "food")

    def start(self, rng: np.random.Generator, episodes: int) -> State:
        return {
            "cells": np.exp(rng.uniform(np.log(300), np.log(3e4), episodes)),
            "food": np.exp(rng.normal(1, 0.5, episodes)),
            "light": np.ones(episodes),
            "hour": rng.integers(0, 24, episodes).astype(float),
            "pace": np.exp(rng.normal(0, 0.25, episodes)),
        }

    def step(self, state: State, action: np.ndarray, rng: np.random.Generator) -> Moved:
        fed, taken = np.clip(action, 0, 1).T
        n, hour = len(action), (state["hour"] + 1) % 24
        sun = np.maximum(np.sin((hour - 6) / 12 * np.pi), 0)
        light = np.clip(0.6 * state["light"] + 0.4 * sun * np.exp(0.3 * rng.normal(size=n)), 0, 2)
        food = state["food"]
        crowd = state["cells"] / 1e7
        grows = state["pace"] * 0.9 * (0.2 + light) * food / (1 + food) * (1 - crowd) - 0.08
        cells = state["cells"] * np.exp(np.clip(grows, -1, 1.2) + 0.12 * rng.normal(size=n))
        harvest = 0.5 * taken * cells
        cells = np.clip(cells - harvest, 100, 3e7)
        food = np.maximum(food * np.exp(-0.3 - 2 * crowd), 1e-3) + 2.5 * fed
        reward = 1e-6 * harvest - 0.15 * fed - 0.02 * taken
        after = {"cells": cells, "food": food, "light": light, "hour": hour, "pace": state["pace"]}
        return Moved(after, reward, never(reward))

    def scripts(self) -> dict[str, Act]:
        cells, food = (lambda obs: self.column(obs, "cells")), (lambda obs: self.column(obs, "food"))
        fill = lambda obs, level: (level - food(obs)) / 2
        return {
            "reap_many": lambda obs: self.amounts(fill(obs, 4.0), (cells(obs) > 3e6).astype(float)),
            "reap_half": lambda obs: self.amounts(fill(obs, 3.0), 0.5 * (cells(obs) > 1e6)),
            "reap_early": lambda obs: self.amounts(fill(obs, 2.0), (cells(obs) > 1e4).astype(float)),
            "starve": lambda obs: self.amounts(np.zeros(len(obs)), (cells(obs) > 1e5).astype(float)),
            "feed": self.constant(1.0, 0.0),
            "both": self.constant(0.5, 0.5),
            "nothing": self.constant(0.0, 0.0),
        }


LATER: tuple[Task, ...] = (Sedation(), Reservoir(), Docking(), Algae())
