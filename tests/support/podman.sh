#!/bin/sh
# Start Podman for the tests of containers, with everything of it in a folder: podman.sh FOLDER. Prints its socket once it answers.
# Where the host withholds CAP_SYS_RESOURCE, containers are started without it: a privileged one could not be started otherwise.
set -eu
folder=$1
runtime=$(command -v runc || command -v crun)
mkdir -p "$folder"
cat > "$folder/runtime" <<END
#!$(command -v python3) -SE
import json, os, sys

REAL, ARGUMENTS = "$runtime", sys.argv[1:]
status = dict(line.split(":\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\t" in line)
if not int(status["CapBnd"], 16) >> 24 & 1:
    bundle, process = ".", ""
    for flag, value in zip(ARGUMENTS, [*ARGUMENTS[1:], ""]):
        name, _, joined = flag.partition("=")
        bundle = (joined or value) if name in {"--bundle", "-b"} else bundle
        process = (joined or value) if name in {"--process", "-p"} else process
    path = process if "exec" in ARGUMENTS else os.path.join(bundle, "config.json")
    if {"create", "run", "exec"} & set(ARGUMENTS) and os.path.exists(path):
        content = json.load(open(path))
        wanted = content.get("process", content)
        wanted.pop("oomScoreAdj", None)
        wanted.pop("rlimits", None)
        for names in (wanted.get("capabilities") or {}).values():
            names[:] = [name for name in names if name != "CAP_SYS_RESOURCE"]
        json.dump(content, open(path, "w"))
os.execv(REAL, [REAL, *ARGUMENTS])
END
chmod 755 "$folder/runtime"
cat > "$folder/containers.conf" <<END
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "tested"
[engine.runtimes]
tested = ["$folder/runtime"]
END
export CONTAINERS_CONF="$folder/containers.conf"
setsid podman --root "$folder/root" --runroot "$folder/run" system service --time=0 "unix://$folder/podman.sock" >"$folder/log" 2>&1 &
echo $! > "$folder/pid"
for _ in $(seq 50); do
  if [ -S "$folder/podman.sock" ]; then
    echo "$folder/podman.sock"
    exit 0
  fi
  sleep 0.2
done
cat "$folder/log" >&2
exit 1
