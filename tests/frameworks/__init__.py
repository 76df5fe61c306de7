"""Models of each framework, served and asked over both protocols; their answers are compared with the framework's own."""
