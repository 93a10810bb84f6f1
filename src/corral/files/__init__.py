"""Files: writing whole or not at all, what was read and has it changed, what kind of content it is."""
