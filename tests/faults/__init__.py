"""Real faults in the write path: what was acknowledged must be there, whatever failed.

writers    a process that forks one publication for each fault; right and wrong writers
strace     runs a publication under strace, which injects the fault into a system call
power      the traced calls played on a disk that forgets what was not synced
trees      a folder as a value
verdict    what is wrong with a content folder after a fault
"""
