"""The protocols: HTTP, gRPC and metrics."""
