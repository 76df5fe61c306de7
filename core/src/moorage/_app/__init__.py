"""The composition root: puts the rooms together and runs a server from its start to its end."""
