"""The scheduler's own vocabulary: resource vectors, tasks, jobs, nodes, queues. No I/O."""
