"""Environments: files and commands for an agent, through one interface, under one policy."""
