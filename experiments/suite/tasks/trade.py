"""Four tasks of trade and service: a shop's orders, jobs that are let in, prices, and a ward."""

from __future__ import annotations

import numpy as np

from .task import Act, Amounts, Choices, Moved, State, Task, never


class Inventory(Task):
    """Orders that arrive two days later; what is sold is known once customers have come."""

    name = "inventory"
    kinds = ("paid for what comes", "exogenous", "few values", "discrete")
    why = "demand comes in bursts and is paid as it comes; columns are whole numbers with many values"
    horizon = 60
    columns = ("stock", "tomorrow", "day_after", "weekday", "demand")
    actions = Choices(5)
    orders = np.array([0, 10, 20, 40, 80])

    def start(self, rng: np.random.Generator, episodes: int) -> State:
        weekday = rng.integers(0, 7, episodes).astype(float)
        stock, zeros = rng.integers(0, 60, episodes).astype(float), np.zeros(episodes)
        return {"stock": stock, "tomorrow": zeros, "day_after": zeros, "weekday": weekday, "demand": zeros}

    def step(self, state: State, action: np.ndarray, rng: np.random.Generator) -> Moved:
        ordered, n = self.orders[action].astype(float), len(action)
        mean = 14 * np.where(state["weekday"] == 5, 2.2, np.where(state["weekday"] == 6, 0.3, 1.0))
        demand = rng.negative_binomial(3, 3 / (3 + mean), n).astype(float)
        there = state["stock"] + state["tomorrow"]
        sold = np.minimum(there, demand)
        stock = np.minimum(there - sold, 300.0)
        reward = 3 * sold - 1.5 * ordered - 6 * (ordered > 0) - 0.1 * stock - 0.5 * (demand - sold)
        after = {"stock": stock, "tomorrow": state["day_after"], "day_after": ordered, "demand": demand}
        return Moved({**after, "weekday": (state["weekday"] + 1) % 7}, reward, never(reward))

    def scripts(self) -> dict[str, Act]:
        def up_to(level: float) -> Act:
            def act(obs: np.ndarray) -> np.ndarray:
                coming = np.asarray(obs, float)[:, :3].sum(1)
                return np.abs(self.orders[None] - (level - coming)[:, None]).argmin(1)

            return act

        return {
            "up_to_60": up_to(60),
            "up_to_40": up_to(40),
            "up_to_110": up_to(110),
            "up_to_200": up_to(200),
            "chase": lambda obs: np.abs(self.orders[None] - self.column(obs, "demand")[:, None]).argmin(1),
            "ten": self.constant(1),
            "none": self.constant(0),
        }


class Admission(Task):
    """Small and large jobs ask for one of two machines; how fast the second is today, no column shows."""

    name = "admission"
    kinds = ("hidden constants", "few values", "walls", "discrete")
    why = "which machine is slow is told by what it did, not by a row"
    horizon = 100
    columns = ("first", "second", "asks")
    actions = Choices(3)

    def start(self, rng: np.random.Generator, episodes: int) -> State:
        asks, speed = rng.integers(0, 3, episodes).astype(float), rng.choice([0.3, 1.6], episodes)
        return {"first": np.zeros(episodes), "second": np.zeros(episodes), "asks": asks, "speed": speed}

    def step(self, state: State, action: np.ndarray, rng: np.random.Generator) -> Moved:
        n, work = len(action), np.array([0.0, 1.0, 4.0])[state["asks"].astype(int)]
        pay = np.array([0.0, 1.0, 6.0])[state["asks"].astype(int)]
        first, second = state["first"] + work * (action == 1), state["second"] + work * (action == 2)
        turned_away = (first > 25) | (second > 25)
        first = np.maximum(np.minimum(first, 25) - rng.poisson(0.8, n), 0.0)
        second = np.maximum(np.minimum(second, 25) - rng.poisson(state["speed"]), 0.0)
        earned = np.where(turned_away, -4.0, pay * (action > 0))
        reward = earned - 0.12 * (first + second)
        asks = rng.choice(3, n, p=[0.2, 0.5, 0.3]).astype(float)
        return Moved(
            {"first": first, "second": second, "asks": asks, "speed": state["speed"]}, reward, never(reward)
        )

    def scripts(self) -> dict[str, Act]:
        def shorter(most: float, bias: float = 0.0) -> Act:
            def act(obs: np.ndarray) -> np.ndarray:
                first, second = self.column(obs, "first"), self.column(obs, "second") + bias
                return np.where(np.minimum(first, second) > most, 0, np.where(first <= second, 1, 2))

            return act

        return {
            "shorter": shorter(6.0),
            "careful": shorter(2.0),
            "all": shorter(99.0),
            "wary": shorter(5.0, 3.0),
            "small_alone": lambda obs: (self.column(obs, "asks") == 1).astype(int),
            "first": self.constant(1),
            "second": self.constant(2),
        }


class Pricing(Task):
    """Thirty days to sell a stock, to visitors by the dozen or by thousands; the price of a rival jumps."""

    name = "pricing"
    kinds = (
        "orders of magnitude",
        "hidden constants",
        "paid for what comes",
        "jumps",
        "exogenous",
        "many short",
        "continuous",
    )
    why = "raw counts from ten to a hundred thousand; how much people like the thing, no column shows"
    horizon = 30
    columns = ("stock", "visitors", "rival", "days_left", "sold")
    jumping = ("rival",)
    actions = Amounts((5.0,), (50.0,))
    wide = ("stock", "visitors", "sold")

    def start(self, rng: np.random.Generator, episodes: int) -> State:
        stock, visitors = (
            np.round(np.exp(rng.normal(7, 1, episodes))),
            np.round(np.exp(rng.normal(7, 1.5, episodes))),
        )
        rival, liked = rng.uniform(15, 35, episodes), rng.normal(0, 5, episodes)
        days = np.full(episodes, 30.0)
        return {
            "stock": stock,
            "visitors": visitors,
            "rival": rival,
            "days_left": days,
            "sold": 0 * days,
            "liked": liked,
        }

    def step(self, state: State, action: np.ndarray, rng: np.random.Generator) -> Moved:
        price, n = np.clip(action[:, 0], 5, 50), len(action)
        wants = 1 / (1 + np.exp((price - state["rival"] - state["liked"]) / 4))
        sold = np.minimum(rng.poisson(state["visitors"] * 0.05 * wants).astype(float), state["stock"])
        jumps = rng.random(n) < 0.1
        rival = np.where(jumps, rng.uniform(15, 35, n), state["rival"])
        drawn = np.log(state["visitors"] + 1) + 0.25 * (7 - np.log(state["visitors"] + 1)) + rng.normal(0, 0.8, n)
        reward = (price - 8) * sold / 100
        after = {
            "stock": state["stock"] - sold,
            "visitors": np.clip(np.round(np.exp(drawn)), 1, 3e5),
            "rival": rival,
        }
        return Moved(
            {**after, "days_left": state["days_left"] - 1, "sold": sold, "liked": state["liked"]},
            reward,
            never(reward),
        )

    def scripts(self) -> dict[str, Act]:
        rival, stock = (lambda obs: self.column(obs, "rival")), (lambda obs: self.column(obs, "stock"))
        return {
            "below": lambda obs: self.amounts(rival(obs) - 3),
            "above": lambda obs: self.amounts(rival(obs) + 8),
            "by_stock": lambda obs: self.amounts(rival(obs) - 3 * (np.log(stock(obs) + 1) - 6)),
            "by_stock_wrongly": lambda obs: self.amounts(rival(obs) + 4 * (np.log(stock(obs) + 1) - 6)),
            "cheap": self.constant(10.0),
            "fair": self.constant(22.0),
            "dear": self.constant(48.0),
        }


class Clinic(Task):
    """A ward: four treatments, patients of two kinds that look alike, and one reward, at the end."""

    name = "clinic"
    kinds = ("few values", "many short", "hidden constants", "goal", "limit", "discrete")
    why = (
        "every column takes few values; 60 comes once at the end and must not count as if every step could pay it"
    )
    horizon = 30
    columns = ("severity", "pressure", "lactate", "fever", "age")
    actions = Choices(4)

    def start(self, rng: np.random.Generator, episodes: int) -> State:
        severity, age = rng.integers(2, 5, episodes).astype(float), rng.integers(0, 4, episodes).astype(float)
        return {"severity": severity, "age": age, "kind": rng.random(episodes) < 0.5, **_signs(severity, rng)}

    def step(self, state: State, action: np.ndarray, rng: np.random.Generator) -> Moved:
        n, (one, two) = len(action), ((action == 1) | (action == 3), (action == 2) | (action == 3))
        helped = np.where(state["kind"], one, two)
        harmed = np.where(state["kind"], two, one)
        better = 0.15 + 0.35 * helped
        worse = 0.16 + 0.12 * harmed + 0.03 * state["age"] - 0.1 * helped
        u = rng.random(n)
        severity = np.clip(state["severity"] - (u < better) + (u > 1 - worse), 0, 6)
        well, lost = severity == 0, severity == 6
        reward = 60.0 * well - 60.0 * lost - 0.5 - 0.5 * (one * 1.0 + two)
        after = {"severity": severity, "age": state["age"], "kind": state["kind"], **_signs(severity, rng)}
        return Moved(after, reward, well | lost)

    def scripts(self) -> dict[str, Act]:
        severity = lambda obs: self.column(obs, "severity")
        return {
            "one": self.constant(1),
            "two": self.constant(2),
            "both": self.constant(3),
            "none": self.constant(0),
            "when_bad": lambda obs: np.where(severity(obs) >= 4, 3, 0),
            "when_well": lambda obs: np.where(severity(obs) <= 3, 3, 0),
            "by_fever": lambda obs: np.where(self.column(obs, "fever") > 0, 1, 2),
        }


def _signs(severity: np.ndarray, rng: np.random.Generator) -> State:
    """Pressure, lactate and fever, as they go with how bad it is."""
    n = len(severity)
    pressure = np.clip(np.round(severity / 2 + rng.normal(0, 0.5, n)), 0, 2)
    lactate = np.clip(np.round(severity / 3 + rng.normal(0, 0.6, n)), 0, 2)
    return {
        "pressure": pressure,
        "lactate": lactate,
        "fever": (rng.random(n) < 0.1 + 0.12 * severity).astype(float),
    }
