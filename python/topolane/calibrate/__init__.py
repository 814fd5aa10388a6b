"""Measures a machine with MPI, fits the parameters of the contention models, and writes them down.

`launch.measure` builds and runs the program, `measurement.read` reads its output, `fit.fit` turns times into
parameters, `machine_file.merged` puts them into a machine file, `figures` draws them.
"""
