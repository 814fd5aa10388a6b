"""What is the same for every live system: one view of it, and all that is asked of the view. It imports no driver: an adapter of each
host fills the view.
"""
