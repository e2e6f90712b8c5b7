"""The `parley` command, one file per group. A module's `add` describes its commands to the parser; what a command needs
is imported when it runs, so that help appears at once."""
