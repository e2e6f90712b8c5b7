"""Parley: a single-box, offline-first voice appliance."""
