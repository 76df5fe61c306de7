"""The examples of deployments."""
