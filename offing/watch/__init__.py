"""After deployment: does the policy earn what was promised, and is the world still the one that was learned?"""
