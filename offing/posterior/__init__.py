"""Room 2: a Dataset in, a Posterior out."""
