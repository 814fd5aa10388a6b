"""What is the same for every live system: what a policy would do there, shadows and their logs, links, plans, metrics. It imports no
driver: an adapter of each host fills the picture.
"""
