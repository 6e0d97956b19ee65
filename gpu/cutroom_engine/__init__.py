"""The engine server: edits media with diffusion models on one device.

A worker on the same machine sends runs over HTTP (see protocol.py). Media files are exchanged through a shared disk.
"""
