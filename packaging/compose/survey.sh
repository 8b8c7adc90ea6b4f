#!/bin/sh
# Writes what `tamis list --metrics` says of Valkey, every minute, for node_exporter. A file that is being written must
# not be read, so it gets its name when it is complete.
cd /metrics || exit 1
while :; do
    tamis list --metrics redis://valkey:6379 >.tamis.new
    [ ! -s .tamis.new ] || mv .tamis.new tamis.prom
    sleep 60
done
