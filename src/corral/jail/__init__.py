"""Jails: a policy compiled into a plan for this host, carried out by the launcher, watched until it is over."""
