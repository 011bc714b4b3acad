"""The pipeline around the Spark jobs: extract, land, publish, read.

`collectors` extract, `exports` land, `spark_jobs` build, `expectations` gate, `warehouse` publishes and reads. `strategies`,
`spark_jobs`, `expectations` and `dags` are separate top-level packages.
"""
