"""The live driver for Slurm: the simulator's policy and queue choose order and nodes (docs/guides/slurm.md)."""
