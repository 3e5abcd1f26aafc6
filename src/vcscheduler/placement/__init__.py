"""Where tasks go: rules over columns of nodes, task classes, the search, and its compiled kernels."""
