"""Policies that leave the house: one description of what a policy computes, written in four ways."""
