"""World models: a Dataset in, a Posterior out."""

from .models import get, models, names

__all__ = ["get", "models", "names"]
