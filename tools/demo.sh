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

log=samples/kafka-4.4/log/__cluster_metadata-0
lake=demo-lake

say "A metadata log that a Kafka 4.4 controller wrote, into a Delta lake. Twice is the same as once."
run import "$log" "$lake"

say "The lake, replayed by a Spark structured stream into images; what each broker was told goes to $lake/local_changes/."
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

printf '\n%sThe lake is %s/. kraftlake --help says what else can be asked; docs/cli.md has every command.%s\n' "$dim" "$lake" "$plain"
