"""Kubernetes: what reads a cluster. It changes nothing there."""
