# Sourced by every Spark program that finds this folder through SPARK_CONF_DIR.
export JAVA_HOME=@JAVA_HOME@
export PYSPARK_PYTHON=@PYTHON@
export PYSPARK_DRIVER_PYTHON=@PYTHON@
