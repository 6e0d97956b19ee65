"""The engine server: edits media with diffusion models on one device.

A worker on the same machine sends runs to it over HTTP (see protocol.py). Both share a disk for
media."""
