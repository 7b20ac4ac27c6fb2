"""Four plants: a cold store, a battery, a tank and a boiler."""

from __future__ import annotations

import numpy as np

from .task import Act, Amounts, Choices, Moved, State, Task, never


class ColdStore(Task):
    """Cooling that costs by the hour's price; a door that somebody opens; goods that spoil when it gets warm."""

    name = "coldstore"
    kinds = ("coin", "exogenous", "few values", "paid for what comes", "continuous")
    why = "a door that stands open in 8% of rows, whatever was done; weather, price and a clock"
    horizon = 96
    columns = ("inside", "outside", "price", "door", "hour")
    actions = Amounts((0.0,), (1.0,))

    def start(self, rng: np.random.Generator, episodes: int) -> State:
        hour = rng.integers(0, 24, episodes).astype(float)
        outside, inside = rng.normal(18, 4, episodes), rng.uniform(1, 8, episodes)
        return {"inside": inside, "outside": outside, "door": np.zeros(episodes), **_priced(hour, rng)}

    def step(self, state: State, action: np.ndarray, rng: np.random.Generator) -> Moved:
        power, n = np.clip(action[:, 0], 0, 1), len(action)
        door = (rng.random(n) < 0.08).astype(float)
        warmth = 18 + 5 * np.sin((state["hour"] - 9) / 12 * np.pi)
        outside = state["outside"] + 0.2 * (warmth - state["outside"]) + rng.normal(0, 0.6, n)
        leak = 0.03 * (state["outside"] - state["inside"]) * (1 + 5 * door)
        inside = state["inside"] + leak - 1.5 * power + rng.normal(0, 0.05, n)
        spoilt = 0.3 * np.clip(inside - 5, 0, 6) ** 2 + 1.0 * (inside < 0)
        after = {"inside": inside, "outside": outside, "door": door, **_priced((state["hour"] + 1) % 24, rng)}
        reward = -state["price"] * power - spoilt
        return Moved(after, reward, never(reward))

    def scripts(self) -> dict[str, Act]:
        inside, price = (lambda obs: self.column(obs, "inside")), (lambda obs: self.column(obs, "price"))
        return {
            "thermostat": lambda obs: self.amounts((inside(obs) > 4.5).astype(float)),
            "save": lambda obs: self.amounts(0.5 * (inside(obs) - 4.5 + 2.0 * (1.2 - price(obs)))),
            "cold": lambda obs: self.amounts(0.6 * (inside(obs) - 1.0)),
            "warm": lambda obs: self.amounts(0.4 * (inside(obs) - 7.5)),
            "backwards": lambda obs: self.amounts(0.4 * (5 - inside(obs))),
            "full": self.constant(1.0),
            "off": self.constant(0.0),
        }


def _priced(hour: np.ndarray, rng: np.random.Generator) -> State:
    """The hour, and what power costs in it: dear in the evening, and a little by chance."""
    dear = 0.8 + 0.8 * np.exp(-(((hour - 18) / 3) ** 2))
    return {"hour": hour, "price": dear * np.exp(0.1 * rng.normal(size=len(hour)))}


class Battery(Task):
    """Buys and sells at a price that is known afterwards; it jumps at random, and its noise has heavy tails."""

    name = "battery"
    kinds = ("jumps", "heavy tails", "exogenous", "walls", "paid for what comes", "continuous")
    why = "prices as markets have them: levels that hold for a while, jump, and are hit by outliers"
    horizon = 96
    columns = ("charge", "price", "load", "hour_sin", "hour_cos")
    jumping = ("price",)
    actions = Amounts((-1.0,), (1.0,))

    def start(self, rng: np.random.Generator, episodes: int) -> State:
        hour, level = rng.integers(0, 24, episodes).astype(float), np.exp(rng.normal(3.6, 0.5, episodes))
        charge = rng.uniform(0, 1, episodes)
        return {"charge": charge, "level": level, "price": level.copy(), "load": np.ones(episodes), "hour": hour}

    def step(self, state: State, action: np.ndarray, rng: np.random.Generator) -> Moved:
        wanted, n = np.clip(action[:, 0], -1, 1), len(action)
        jumps, hour = rng.random(n) < 0.12, (state["hour"] + 1) % 24
        level = np.where(jumps, np.exp(rng.normal(3.6, 0.5, n)), state["level"])
        price = level + np.clip(2.0 * rng.standard_t(2.5, n), -60, 120)
        charge = np.clip(state["charge"] + 0.25 * wanted, 0, 1)
        moved = charge - state["charge"]
        bought = np.where(moved > 0, moved / 0.92, moved * 0.92)
        load = 1 + 0.4 * np.sin(hour / 12 * np.pi) + 0.1 * rng.normal(size=n)
        reward = -bought * price / 10 - 0.02 * wanted**2
        after = {"charge": charge, "level": level, "price": price, "load": load, "hour": hour}
        return Moved(after, reward, never(reward))

    def observe(self, state: State) -> np.ndarray:
        clock = state["hour"] / 12 * np.pi
        return np.stack([state["charge"], state["price"], state["load"], np.sin(clock), np.cos(clock)], 1)

    def scripts(self) -> dict[str, Act]:
        price, charge = (lambda obs: self.column(obs, "price")), (lambda obs: self.column(obs, "charge"))
        return {
            "trade": lambda obs: self.amounts((36 - price(obs)) / 15),
            "trade_rarely": lambda obs: self.amounts(
                np.where(price(obs) < 22, 1.0, np.where(price(obs) > 60, -1.0, 0.0))
            ),
            "trade_dearly": lambda obs: self.amounts((60 - price(obs)) / 40),
            "half_full": lambda obs: self.amounts(2 * (0.5 - charge(obs))),
            "backwards": lambda obs: self.amounts((price(obs) - 36) / 15),
            "sell": self.constant(-1.0),
            "idle": self.constant(0.0),
        }


class Tank(Task):
    """A pump keeps a tank from running over, which ends the day; a full one is cheaper to pump from."""

    name = "tank"
    kinds = ("limit", "constant and collinear", "coin", "exogenous", "few values", "walls", "discrete")
    why = "what pays is next to what ends it; pressure follows from level, and the pump's number never changes"
    horizon = 120
    columns = ("level", "pressure", "inflow", "rain", "speed", "pump")
    actions = Choices(3)

    def start(self, rng: np.random.Generator, episodes: int) -> State:
        zeros = np.zeros(episodes)
        return {
            "level": rng.uniform(3, 7, episodes),
            "inflow": np.full(episodes, 0.4),
            "rain": zeros,
            "speed": zeros,
        }

    def step(self, state: State, action: np.ndarray, rng: np.random.Generator) -> Moved:
        n, speed = len(action), action.astype(float)
        rain = (rng.random(n) < np.where(state["rain"] == 1, 0.8, 0.05)).astype(float)
        inflow = 0.7 * state["inflow"] + 0.3 * (0.35 + 0.9 * rain) * np.exp(0.2 * rng.normal(size=n))
        level = np.maximum(state["level"] + inflow - 0.55 * speed, 0.0)
        ended = level > 10
        dry = (level < 1) & (speed > 0)
        reward = 0.5 - 0.06 * speed * (13 - state["level"]) - 1.0 * dry - 40.0 * ended
        return Moved({"level": level, "inflow": inflow, "rain": rain, "speed": speed}, reward, ended)

    def observe(self, state: State) -> np.ndarray:
        shown = [state["level"], 101.3 + 9.81 * state["level"], state["inflow"], state["rain"], state["speed"]]
        return np.stack([*shown, np.full(len(state["level"]), 7.0)], 1)

    def scripts(self) -> dict[str, Act]:
        level, rain = (lambda obs: self.column(obs, "level")), (lambda obs: self.column(obs, "rain"))
        steps = lambda at, low, high: (at > low).astype(int) + (at > high).astype(int)
        return {
            "high": lambda obs: steps(level(obs) + 2.5 * rain(obs), 7.0, 8.5),
            "middle": lambda obs: steps(level(obs), 5.0, 7.0),
            "low": lambda obs: steps(level(obs), 1.0, 3.0),
            "brim": lambda obs: steps(level(obs), 9.0, 9.6),
            "upside_down": lambda obs: 2 - steps(level(obs), 4.0, 7.0),
            "slow": self.constant(1),
            "off": self.constant(0),
        }


class Boiler(Task):
    """Keeps water at a set-point that changes now and then; its logs come from operators who know how."""

    name = "boiler"
    kinds = ("clone solves", "jumps", "continuous")
    why = "the log is good already: there is little to win, and a policy must not lose it"
    horizon = 80
    columns = ("warmth", "setpoint", "flow")
    jumping = ("setpoint",)
    actions = Amounts((0.0,), (1.0,))
    behaviours = (1.0, 0.93, 0.87)
    noise = 0.05

    def start(self, rng: np.random.Generator, episodes: int) -> State:
        setpoint = rng.choice([50.0, 60.0, 70.0], episodes)
        return {"warmth": setpoint + rng.normal(0, 3, episodes), "setpoint": setpoint, "flow": np.ones(episodes)}

    def step(self, state: State, action: np.ndarray, rng: np.random.Generator) -> Moved:
        burn, n = np.clip(action[:, 0], 0, 1), len(action)
        lost = 0.08 * state["flow"] * (state["warmth"] - 15)
        warmth = state["warmth"] + 8 * burn - lost + rng.normal(0, 0.2, n)
        flow = np.clip(1 + 0.9 * (state["flow"] - 1) + 0.06 * rng.normal(size=n), 0.4, 1.6)
        setpoint = np.where(rng.random(n) < 0.02, rng.choice([50.0, 60.0, 70.0], n), state["setpoint"])
        reward = -np.minimum(np.abs(warmth - state["setpoint"]), 20) / 5 - 0.05 * burn
        return Moved({"warmth": warmth, "setpoint": setpoint, "flow": flow}, reward, never(reward))

    def scripts(self) -> dict[str, Act]:
        def towards(stiff: float, known: float) -> Act:
            def act(obs: np.ndarray) -> np.ndarray:
                warmth, setpoint = self.column(obs, "warmth"), self.column(obs, "setpoint")
                steady = 0.01 * self.column(obs, "flow") * (setpoint - 15)
                return self.amounts(known * steady + stiff * (setpoint - warmth))

            return act

        return {
            "steady": towards(0.1, 1.0),
            "firm": towards(0.06, 0.9),
            "timid": towards(0.03, 0.8),
            "lag": towards(0.05, 0.0),
            "backwards": towards(-0.05, 1.0),
            "half": self.constant(0.45),
            "full": self.constant(1.0),
        }
