"""The commands, a file each; what a command does is in the packages, what it prints in :mod:`.output`."""
