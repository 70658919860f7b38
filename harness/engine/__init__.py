"""The engine that runs every study: tasks, limits, local and Dask workers, the journal, and results folders."""
