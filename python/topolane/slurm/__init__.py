"""Slurm: the plugin of slurmctld is built and put in place here; all else only reads (docs/guides/slurm.md)."""
