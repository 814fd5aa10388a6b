"""Clients of the systems that several drivers reach: Slurm's own command, libvirt, QEMU's monitor, Nova's servers."""
