"""Room 5: a policy and a posterior in, what the policy will earn out."""
