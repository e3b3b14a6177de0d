"""The command line: one file a command, and what they share. Nothing below imports from here."""
