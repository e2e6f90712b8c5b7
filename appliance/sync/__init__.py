"""The network, when there is one."""
