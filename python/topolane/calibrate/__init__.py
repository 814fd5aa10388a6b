"""Measures a machine with MPI, fits what the contention models need, and writes it down.

`launch.measure` builds and runs the program, `measurement.read` takes what it printed, `fit.fit` turns
times into parameters, `machine_file.merged` puts them into a machine file, `figures` draws them.
"""
