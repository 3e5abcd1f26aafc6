"""The scheduler as a process: when to run a cycle, who may write, and what can be seen of it from outside."""
