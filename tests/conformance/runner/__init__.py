"""Plays recorded cases against a server: lays out a repository, starts the server, sends requests, compares what comes back.

values   tensors (bytes and plain lists), compare (differences), shape (what is not compared), metrics
case     cases as read from the files, differences (what moorage does otherwise), expectations (what must pass now)
running  ports, process, session (one case against one server), repository, *_steps (what a step does), play (a whole case)
record   writes observations back into the case files; __main__ is the command line
"""
