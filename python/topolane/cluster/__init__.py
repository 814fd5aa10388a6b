"""What is the same for every live system, over one picture of it: what a policy would do there. An adapter of each host fills the
picture.
"""
