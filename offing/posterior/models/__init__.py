"""World models: a Dataset in, a Posterior out. The folder is the registry: x.py holds the model named x."""

from __future__ import annotations

from ...registry import Registry
from ...types import WorldModel

models: Registry[WorldModel] = Registry(__name__, WorldModel, "model")
names, get = models.names, models.get
