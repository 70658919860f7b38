"""What certificates mean, problem by problem; nothing here is the package's."""
