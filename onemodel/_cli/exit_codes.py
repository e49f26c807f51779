"""What the exit code of a command says."""

#: All well.
SAME = 0
#: Something differs, is damaged or was left out.
DIFFERENT = 1
#: The command could not run.
FAILED = 2
#: Ctrl-C.
INTERRUPTED = 130
