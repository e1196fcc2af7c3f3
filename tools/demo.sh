#!/usr/bin/env bash
# A real Kafka metadata log, all the way: Kafka's files → Delta lake → Spark stream → images → local changes.
# Each step prints the command that it runs; every one of them works on a log of yours just so.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH"
if [ -t 1 ]; then bold=$'\e[1m' dim=$'\e[2m' plain=$'\e[0m'; else bold='' dim='' plain=''; fi

say() { printf '\n%s# %s%s\n' "$dim" "$1" "$plain"; }
run() { printf '%s$ kraftlake %s%s\n' "$bold" "$*" "$plain"; kraftlake "$@"; }

# The first lines of each kind, so that a page holds them.
summed_up() {
  awk '{ kind = / has no leader/ ? "leaderless" : $1 == "became" ? $2 : $1 }
       /^[^ ]/ || ++seen[kind] <= 3 { print; next } { more++ }
       END { if (more) printf "  … and %d more things like these\n", more }'
}

scratch=$(mktemp -d)
up=
trap '[ -z "$up" ] || kill "$up" 2> /dev/null; rm -rf "$scratch"' EXIT

log=samples/kafka-4.4/log/__cluster_metadata-0
lake=demo-lake

say "A metadata log that a Kafka 4.4 controller wrote, into a Delta lake. Twice is the same as once."
run import "$log" "$lake"

say "The lake, replayed by a Spark structured stream into images; what each broker has to do goes to $lake/local_changes/."
run spark replay "$lake"

say "Some of its history. Topics were created …"
run diff "$lake" 17 67

say "… broker 3 was lost: it is fenced, and what it led gets other leaders …"
run diff "$lake" 402 458

say "… which each broker learned as changes of its own: brokers 1, 2 and 4 take over, broker 3 would follow."
for broker in 1 2 3 4; do
  run local-changes "$lake" --broker "$broker" --from 402 --to 458
done

say "What one of the partitions that broker 3 alone had went through, in sentences."
run events "$lake" --partition t-1-bkq-1 --to 1000

say "The cluster later on, just before it was shut down. --at-offset and --at-time take any moment."
run image "$lake" --at-offset 4592

say "And what the brokers did when broker 3 was lost: real ReplicaManagers, driven through that part of the log. Broker 3 starts again at the end."
for broker in 2 3; do
  run replay "$lake" --broker "$broker" --from 403 --to 470 | summed_up
done

cluster=demo-cluster
rm -rf "$cluster" "$cluster-data"
say "The other way round: a cluster of our own, whose metadata log is a lake. Three brokers and two controllers."
printf '%s$ kraftlake cluster up %s --json --override broker.session.timeout.ms=3000 &%s\n' "$bold" "$cluster" "$plain"
kraftlake cluster up "$cluster" --json --override broker.session.timeout.ms=3000 > "$scratch/up.json" 2> "$scratch/up.err" &
up=$!
until [ -s "$scratch/up.json" ]; do kill -0 "$up" || { cat "$scratch/up.err" >&2; exit 1; }; sleep 0.1; done
field() { python -c 'import json, sys; up = json.load(open(sys.argv[1])); print(eval(sys.argv[2], {"up": up}))' "$scratch/up.json" "$1"; }
bootstrap=$(field 'up["bootstrap"]')
echo "brokers at $bootstrap"
client() { printf '%s$ python tools/demo_client.py %s%s\n' "$bold" "$1 BROKERS ${*:3}" "$plain"; python tools/demo_client.py "$@"; }

say "A client that knows nothing of it, librdkafka, creates a topic, writes and reads."
client create "$bootstrap" orders
client write "$bootstrap" orders 1000
client read "$bootstrap" orders

leader=$(python tools/demo_client.py leader "$bootstrap" orders)
say "The broker that leads the topic is killed. Another one takes over, and nothing is lost."
pid=$(field "[node['pid'] for node in up['nodes'] if node['id'] == $leader][0]")
printf '%s$ kill -9 %s   # broker %s%s\n' "$bold" "$pid" "$leader" "$plain"
kill -9 "$pid"
client write "$bootstrap" orders 1000 1000
client read "$bootstrap" orders

say "All of that is in the lake, as it happened."
run events "$cluster" --broker "$leader"
run events "$cluster" --topic orders
kill "$up"
wait "$up" || :  # its exit code says that a node was lost
up=

printf '\n%sThe lake is %s/. kraftlake --help says what else can be asked; docs/cli.md has every command.%s\n' "$dim" "$lake" "$plain"
