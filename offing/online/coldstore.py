"""A cold store, for the sample table `offing:coldstore`: its truth, so that what a log promises can be checked.

Every hour somebody sets a compressor to low, mid or high. Heat comes in through the walls and, while goods are
moved, through the door; electricity has a price by the hour. What an hour costs is energy times price; food that
is kept at a wrong temperature loses worth, and an alarm (too warm by 3 degrees) costs extra. Weather, price and
door do not care what the compressor does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..types import Array, Discrete, Key, Task
from .envs import Env

CHOICES = ("low", "mid", "high")
PRODUCTS = ("fish", "fruit", "milk")
SETPOINT = (1.0, 6.0, 4.0)
MACHINES = ("A1", "A2", "B1", "B2")
STOCK = (0, 2, 1, 2)  # the product that each machine keeps
COOLING, ENERGY = (0.3, 1.1, 2.3), (0.5, 2.0, 5.0)  # degrees and kWh an hour
HOURS, RANDOM = 24, 0.35  # of an episode; share of hours in which somebody tried something else
REWARD = "-cost - 0.4 * abs(next(temp) - setpoint) - 2 * alarm"
COLUMNS = ("temp", "setpoint", "outdoor", "price", "door", *(f"product={p}" for p in PRODUCTS), "alarm")


class Store(NamedTuple):
    """One machine at one hour."""

    temp: Array
    product: Array
    weather: Array  # the day's, apart from the hour
    outdoor: Array
    price: Array
    door: Array
    hour: Array


def begin(key: Key, product: Array) -> Store:
    """A machine at midnight, before anything was observed."""
    weather = 12.0 + 3.0 * jax.random.normal(jax.random.fold_in(key, 0))
    temp = jnp.asarray(SETPOINT)[product] + 1.0
    return _outside(
        jax.random.fold_in(key, 1), Store(temp, product, weather, weather, weather, weather, jnp.zeros(()))
    )


def _outside(key: Key, store: Store) -> Store:
    """What the world does to a machine at its hour, whatever was done inside."""
    hour = store.hour
    peak = jnp.where((hour >= 17) & (hour < 21), 0.5, jnp.where((hour >= 7) & (hour < 22), 0.3, 0.15))
    noise = jax.random.normal(key, (2,))
    busy = jnp.where((hour >= 8) & (hour < 18), 0.35, 0.05)
    return store._replace(
        outdoor=store.weather + 5.0 * jnp.sin(2 * jnp.pi * (hour - 9.0) / 24.0) + 0.3 * noise[0],
        price=jnp.maximum(peak + 0.02 * noise[1], 0.05),
        door=jax.random.bernoulli(jax.random.fold_in(key, 2), busy).astype(jnp.float32),
    )


def alarm(store: Store) -> Array:
    """1 while it is too warm by more than three degrees."""
    return (store.temp > jnp.asarray(SETPOINT)[store.product] + 3.0).astype(jnp.float32)


def cost(store: Store, choice: Array) -> Array:
    """What the compressor's energy costs in this hour; it works harder when it is hot outside."""
    energy = jnp.asarray(ENERGY)[choice] * (1.0 + 0.02 * jnp.maximum(store.outdoor - 10.0, 0.0))
    return energy * store.price


def advance(key: Key, store: Store, choice: Array) -> tuple[Store, Array]:
    """The machine an hour later, and what that hour earned."""
    noise = jax.random.normal(jax.random.fold_in(key, 0), (2,))
    warming = 0.1 * (store.outdoor - store.temp) + 0.9 * store.door
    temp = store.temp + warming - jnp.asarray(COOLING)[choice] + 0.15 * noise[0]
    weather = 12.0 + 0.98 * (store.weather - 12.0) + 0.5 * noise[1]
    later = store._replace(temp=temp, weather=weather, hour=(store.hour + 1.0) % 24.0)
    later = _outside(jax.random.fold_in(key, 1), later)
    off = jnp.abs(temp - jnp.asarray(SETPOINT)[store.product])
    return later, -cost(store, choice) - 0.4 * off - 2.0 * alarm(store)


def operator(key: Key, store: Store) -> Array:
    """What the people at the store do: by the thermometer, and now and then by whim."""
    over = store.temp - jnp.asarray(SETPOINT)[store.product]
    usual = jnp.where(over > 1.0, 2, jnp.where(over > -0.5, 1, 0))
    whim = jax.random.bernoulli(jax.random.fold_in(key, 0), RANDOM)
    return jnp.where(whim, jax.random.randint(jax.random.fold_in(key, 1), (), 0, 3), usual)


def observed(store: Store) -> Array:
    """The observation as the sample's schema encodes a row."""
    turn = 2 * jnp.pi * store.hour / 24.0
    setpoint = jnp.asarray(SETPOINT)[store.product]
    plain = jnp.stack([store.temp, setpoint, store.outdoor, store.price, store.door])
    kind = jnp.eye(len(PRODUCTS))[store.product]
    return jnp.concatenate([plain, kind, alarm(store)[None], jnp.stack([jnp.sin(turn), jnp.cos(turn)])])


def _day(key: Key, store: Store, act: Callable[[Key, Store], Array]) -> tuple[Store, tuple[Store, Array]]:
    """A day of a machine: how it is at the end, and each hour with what was chosen."""

    def hour(store: Store, key: Key) -> tuple[Store, tuple[Store, Array]]:
        choice = act(jax.random.fold_in(key, 7), store)
        return advance(key, store, choice)[0], (store, choice)

    return jax.lax.scan(hour, store, jax.random.split(key, HOURS))


def make() -> Env:
    """The cold store as an environment: an episode is a day, after days that its people ran."""

    def reset(key: Key) -> tuple[Store, Array]:
        which = jax.random.randint(jax.random.fold_in(key, 0), (), 0, len(MACHINES))
        store = begin(jax.random.fold_in(key, 1), jnp.asarray(STOCK)[which])
        for day in range(2):
            store, _ = _day(jax.random.fold_in(key, 2 + day), store, operator)
        return store, observed(store)

    def step(key: Key, store: Store, action: Array) -> tuple[Store, Array, Array, Array]:
        store, reward = advance(key, store, jnp.argmax(action))
        return store, observed(store), reward, jnp.asarray(False)

    return Env(reset, step, Task(HOURS, 0.99, Discrete(len(CHOICES))))


def table(seed: int = 0, days: int = 60) -> dict[str, list[str]]:
    """The messy table of the sample: machines interleaved by time, words, and cells that a sensor lost."""
    stores = [begin(jax.random.key(seed * 100 + i), jnp.asarray(p)) for i, p in enumerate(STOCK)]
    state = jax.tree.map(lambda *leaves: jnp.stack(leaves), *stores)
    keys = jax.random.split(jax.random.key(seed + 1), days * len(STOCK)).reshape(days, len(STOCK))
    run = jax.vmap(lambda key, store: _day(key, store, operator))
    _, (hours, choices) = jax.lax.scan(lambda store, key: run(key, store), state, keys)  # [D, machines, 24]
    spent = jax.vmap(cost)(jax.tree.map(lambda leaf: leaf.reshape(-1), hours), choices.reshape(-1))
    columns = [np.asarray(leaf).swapaxes(1, 2).reshape(-1) for leaf in (*hours, alarm(hours), choices)]
    temp, product, _, outdoor, price, door, _, warm, choice = columns  # [D * 24 * machines]
    paid = np.asarray(spent).reshape(np.shape(choices)).swapaxes(1, 2).reshape(-1)
    clock = np.datetime64("2024-03-01T00:00") + np.arange(days * HOURS).repeat(len(STOCK)).astype("timedelta64[h]")
    rng = np.random.default_rng(seed)
    lost = np.zeros((days * HOURS, len(STOCK)), bool)
    for _ in range(days):
        at, which = rng.integers(days * HOURS - 6), rng.integers(len(STOCK))
        lost[at : at + rng.integers(1, 5), which] = True
    yes_no = lambda flags: np.where(flags > 0, "yes", "no").tolist()
    number = lambda part, digits: [f"{value:.{digits}f}" for value in part.tolist()]
    return {
        "timestamp": [str(moment).replace("T", " ") for moment in clock],
        "site": [str(name[0]) for name in MACHINES] * (days * HOURS),
        "machine": [str(name) for name in MACHINES] * (days * HOURS),
        "temp": number(temp, 2),
        "setpoint": number(np.asarray(SETPOINT)[product], 1),
        "outdoor": ["" if gone else text for text, gone in zip(number(outdoor, 1), lost.ravel(), strict=True)],
        "price": number(price, 3),
        "door": yes_no(door),
        "product": np.asarray(PRODUCTS)[product].tolist(),
        "alarm": yes_no(warm),
        "compressor": np.asarray(CHOICES)[choice].tolist(),
        "cost": number(paid, 3),
    }
