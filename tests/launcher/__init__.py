"""Tests that drive the launcher's binary alone, one file a facility of launcher/."""
