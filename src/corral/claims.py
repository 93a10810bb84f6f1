"""Claims: what a jail can be said to hold. Policies demand them, backends make them, results list the rest.

One row a claim: its name and the sentence a person reads when it is *not* covered.
"""

from __future__ import annotations

CLAIMS: dict[str, str] = {
    "writes": "files outside the writable places can be changed",
    "truncate": "files outside the writable places can be truncated",
    "metadata": "modes, owners, times and attributes of files outside can be changed",
    "keys": "key material under home can be read",
    "hidden": "paths that the policy hides can be read",
    "read-only-inside": "read-only places inside a writable one can be written",
    "processes": "processes outside can be listed",
    "signals": "processes outside can be signalled",
    "memory": "memory of other processes can be read or written",
    "abstract-sockets": "abstract unix sockets outside can be reached",
    "control-sockets": "control sockets (runtime directory, containers, D-Bus, agents) can be reached",
    "pathname-sockets": "unix sockets in readable directories can be reached",
    "tcp": "TCP connections can be made",
    "udp": "UDP packets can be sent",
    "families": "other socket families (vsock, netlink, packet, …) can be used",
    "terminals": "other terminals of the same user can be opened",
    "devices": "devices that can be read can be told what to do (ioctl)",
    "terminal-input": "characters can be pushed into the terminal",
    "ipc": "System V memory, semaphores and queues are shared with the host",
    "temp": "temporary directories are shared with the host",
    "tree": "a process can outlive its run",
    "project-config": "the project's own corral.toml can be changed",
    "memory-limit": "memory in files that no process maps is not counted against the limit",
}

NETWORK_OFF = ("tcp", "udp", "families")

# What every jailed policy demands without being asked. The rest is reported, and demanded by naming it.
ALWAYS = ("writes", "truncate", "terminal-input", "tree")
