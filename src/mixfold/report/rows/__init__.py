"""One pass over the rows: what is summed up of all of them, and a sample that is shown."""
