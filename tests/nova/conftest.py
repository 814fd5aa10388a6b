"""One cloud for all tests."""

from shared_cloud import cloud, running

__all__ = ["cloud", "running"]
