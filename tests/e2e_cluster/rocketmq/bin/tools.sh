#!/bin/sh
# Runs a class of RocketMQ: tools.sh CLASS ARGUMENT…
# shellcheck disable=SC2086 # JAVA_OPT_EXT is a list of words
exec java $JAVA_OPT_EXT -XX:+UseSerialGC -XX:TieredStopAtLevel=1 \
  --add-exports=java.base/jdk.internal.ref=ALL-UNNAMED --add-opens=java.base/sun.nio.ch=ALL-UNNAMED \
  --add-opens=java.base/java.nio=ALL-UNNAMED --add-opens=java.base/jdk.internal.ref=ALL-UNNAMED \
  -cp "/opt/rocketmq/classes:/opt/rocketmq/lib/*" "$@"
