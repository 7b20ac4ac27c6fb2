"""Three living things: a patient's glucose, a bioreactor, and fields to water."""

from __future__ import annotations

import numpy as np

from .task import Act, Amounts, Choices, Moved, State, Task, never


class Glucose(Task):
    """Insulin every quarter of an hour; meals come unasked, how a patient answers is hidden, too low ends it."""

    name = "glucose"
    kinds = ("hidden constants", "noise by state", "limit", "exogenous", "continuous")
    why = "no column shows which patient it is, nor insulin that still works; the sensor errs by what it reads"
    horizon = 96
    columns = ("sensor", "trend", "meal", "hour")
    actions = Amounts((0.0,), (6.0,))
    noise = 0.06  # more would be the end of most patients

    def start(self, rng: np.random.Generator, episodes: int) -> State:
        glucose, zeros = rng.uniform(100, 200, episodes), np.zeros(episodes)
        hidden = {
            "glucose": glucose,
            "gut": zeros,
            "board": zeros + 2.0,
            "answers": np.exp(rng.normal(0, 0.3, episodes)),
        }
        return {**hidden, "sensor": glucose, "trend": zeros, "meal": zeros, "hour": rng.uniform(0, 24, episodes)}

    def step(self, state: State, action: np.ndarray, rng: np.random.Generator) -> Moved:
        dose, n = np.clip(action[:, 0], 0, 6), len(action)
        gut, board = 0.85 * (state["gut"] + state["meal"]), 0.8 * state["board"] + dose
        risen = 0.5 * gut + 5 + 0.02 * (140 - state["glucose"]) - 3.0 * state["answers"] * board
        glucose = np.clip(state["glucose"] + risen + 0.015 * state["glucose"] * rng.normal(size=n), 20, 450)
        sensor = glucose * (1 + 0.05 * rng.normal(size=n))
        hour = (state["hour"] + 0.25) % 24
        eats = rng.random(n) < 0.01 + 0.12 * (
            (np.abs(hour - 8) < 1) | (np.abs(hour - 13) < 1) | (np.abs(hour - 19) < 1)
        )
        meal = np.where(eats, rng.uniform(20, 90, n), 0.0)
        ended = glucose < 50
        reward = -np.minimum(2 * np.log(glucose / 120) ** 2, 3) - 250.0 * ended
        hidden = {"glucose": glucose, "gut": gut, "board": board, "answers": state["answers"]}
        return Moved(
            {**hidden, "sensor": sensor, "trend": sensor - state["sensor"], "meal": meal, "hour": hour},
            reward,
            ended,
        )

    def scripts(self) -> dict[str, Act]:
        def bolus(basal: float, carbs: float, correct: float) -> Act:
            def act(obs: np.ndarray) -> np.ndarray:
                over = np.maximum(self.column(obs, "sensor") - 140, 0)
                low = self.column(obs, "sensor") + self.column(obs, "trend") < 90
                return self.amounts(np.where(low, 0.0, basal + carbs * self.column(obs, "meal") + correct * over))

            return act

        return {
            "bolus": bolus(0.35, 0.04, 0.003),
            "basal_alone": bolus(0.35, 0.0, 0.0),
            "meals_alone": bolus(0.0, 0.08, 0.0),
            "eager": bolus(0.5, 0.1, 0.012),
            "too_much": self.constant(2.0),
            "some": self.constant(0.35),
            "none": self.constant(0.0),
        }


class Bioreactor(Task):
    """Fed cells make a product; they grow when warm, produce when cool, and are counted raw, from 1e5 to 1e10."""

    name = "bioreactor"
    kinds = ("orders of magnitude", "noise by state", "hidden constants", "paid for what comes", "continuous")
    why = "growth over five orders of magnitude whose noise grows with it, and a strain that no column shows"
    horizon = 50
    columns = ("cells", "sugar", "waste", "product", "hour")
    actions = Amounts((0.0, 30.0), (1.0, 37.0))
    wide = ("cells", "product")

    def start(self, rng: np.random.Generator, episodes: int) -> State:
        cells, zeros = np.round(np.exp(rng.normal(13, 0.7, episodes))), np.zeros(episodes)
        strain = np.exp(rng.normal(0, 0.15, episodes))
        return {
            "cells": cells,
            "sugar": zeros + 10.0,
            "waste": zeros,
            "product": zeros,
            "hour": zeros,
            "strain": strain,
        }

    def step(self, state: State, action: np.ndarray, rng: np.random.Generator) -> Moved:
        feed, warmth, n = np.clip(action[:, 0], 0, 1), (np.clip(action[:, 1], 30, 37) - 30) / 7, len(action)
        sugar, billions = state["sugar"], state["cells"] / 1e9
        eats = sugar / (2 + sugar + sugar**2 / 40)
        grows = 0.55 * state["strain"] * (0.15 + 0.85 * warmth) * eats - 0.02 - 0.03 * state["waste"]
        cells = np.clip(np.round(state["cells"] * np.exp(grows + 0.08 * rng.normal(size=n))), 1e3, 2e10)
        eaten = np.minimum(sugar, 1.2 * billions * eats)
        waste = np.minimum(state["waste"] + 0.15 * eaten, 30)
        made = billions * eats * (1.3 - warmth) * np.exp(0.1 * rng.normal(size=n))
        after = {"cells": cells, "sugar": np.minimum(sugar - eaten + 3 * feed, 60), "waste": waste}
        after |= {"product": state["product"] + made, "hour": state["hour"] + 1, "strain": state["strain"]}
        reward = made - 0.05 * feed
        return Moved(after, reward, never(reward))

    def scripts(self) -> dict[str, Act]:
        def shift(at: float, sugar: float) -> Act:
            def act(obs: np.ndarray) -> np.ndarray:
                cool = np.log(self.column(obs, "cells") + 1) > at
                return self.amounts((sugar - self.column(obs, "sugar")) / 3, np.where(cool, 30.0, 37.0))

            return act

        return {
            "shift": shift(20.7, 8.0),
            "shift_early": shift(17.5, 8.0),
            "shift_late": shift(22.5, 8.0),
            "starved": shift(20.7, 1.0),
            "warm": self.constant(0.5, 37.0),
            "cool": self.constant(0.5, 31.0),
            "overfed": self.constant(1.0, 34.0),
        }


class Irrigation(Task):
    """Water for four fields over half a year; it rains seldom, and then sometimes very much."""

    name = "irrigation"
    kinds = ("heavy tails", "exogenous", "coin", "few long", "paid for what comes", "walls", "discrete")
    why = "few long episodes, rain that is nothing on most days and a flood on some"
    horizon = 180
    columns = ("field_1", "field_2", "field_3", "field_4", "warmth", "rain", "forecast", "sun", "season", "water")
    actions = Choices(6)

    def start(self, rng: np.random.Generator, episodes: int) -> State:
        zeros = np.zeros(episodes)
        weather = {"warmth": rng.normal(15, 3, episodes), "rain": zeros, "forecast": zeros, "sun": zeros + 0.5}
        return {"fields": rng.uniform(20, 60, (episodes, 4)), **weather, "day": zeros, "water": zeros + 100.0}

    def step(self, state: State, action: np.ndarray, rng: np.random.Generator) -> Moved:
        n, season = len(action), np.sin(state["day"] / 180 * np.pi)
        rains = rng.random(n) < np.where(state["forecast"] == 1, 0.6, 0.04)
        rain = np.where(rains, np.minimum(4 * (1 + rng.pareto(1.6, n)), 120), 0.0)
        given = 12.0 * (action[:, None] == np.arange(1, 5)) + 5.0 * (action[:, None] == 5)
        given = given * np.minimum(1, state["water"] / np.maximum(given.sum(1), 1e-9))[:, None]
        dried = (
            (0.05 + 0.004 * state["warmth"] * state["sun"])[:, None] * state["fields"] / np.array([1, 1.3, 1.6, 2])
        )
        fields = np.clip(state["fields"] + given + rain[:, None] - dried, 0, 100)
        grown = np.clip(1 - ((fields - 45) / 30) ** 2, -0.5, 1).mean(1)
        reward = grown * (0.3 + 0.7 * season) - 0.03 * given.sum(1)
        after = {
            "fields": fields,
            "warmth": 0.8 * state["warmth"] + 0.2 * (12 + 12 * season) + rng.normal(0, 1.5, n),
            "rain": rain,
            "forecast": (rng.random(n) < 0.2).astype(float),
            "sun": np.clip(rng.beta(2, 1.5, n) * (1 - 0.5 * rains), 0, 1),
            "day": state["day"] + 1,
            "water": np.minimum(state["water"] - given.sum(1) + 6 + 0.5 * rain, 200),
        }
        return Moved(after, reward, never(reward))

    def observe(self, state: State) -> np.ndarray:
        shown = [state[name] for name in ("warmth", "rain", "forecast", "sun")]
        return np.stack([*state["fields"].T, *shown, np.sin(state["day"] / 180 * np.pi), state["water"]], 1)

    def scripts(self) -> dict[str, Act]:
        def driest(below: float, wait: bool) -> Act:
            def act(obs: np.ndarray) -> np.ndarray:
                fields = np.asarray(obs, float)[:, :4]
                enough = (fields.min(1) > below) | (wait & (self.column(obs, "forecast") == 1))
                return np.where(enough, 0, fields.argmin(1) + 1)

            return act

        return {
            "driest": driest(40.0, True),
            "driest_always": driest(40.0, False),
            "thrifty": driest(25.0, True),
            "lavish": driest(75.0, False),
            "wettest": lambda obs: np.asarray(obs)[:, :4].argmax(1) + 1,
            "all": self.constant(5),
            "none": self.constant(0),
        }
