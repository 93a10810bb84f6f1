"""The parts of peers.py: who takes part, how each is installed and checked, what is measured, what is written."""
