"""The command line, and the programs that drive whole days through Airflow. On top of every other package."""
