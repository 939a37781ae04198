"""How a fit runs: data, executors, the loop, schedules, stopping, checkpoints, random numbers."""
