"""Value: a policy and a posterior or a log in, what the policy will earn out."""
