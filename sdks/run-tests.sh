#!/usr/bin/env bash
# Runs the tests of every SDK whose toolchain is installed, and names the SDKs that were left out.
#   run-tests.sh [--require NAME,NAME] [--quick | --without-mutants | --mutants]
# --require fails if the toolchain of a named SDK is missing; with CI=true that is every SDK. --quick leaves out the tests
# against the real service and the mutants, which need `npm ci && npm run build` at the root. --mutants runs nothing else, beside or after
# a run --without-mutants, which installs their packages.
set -euo pipefail
cd "$(dirname "$0")"

all=(node web react-native kotlin swift flutter nextjs)
required=()
quick=false
mutants=true
[[ ${CI:-} == true ]] && required=("${all[@]}")
# Lists what failed at the end, also where the output is no terminal.
export NODE_OPTIONS="${NODE_OPTIONS:-} --test-reporter=spec"
while (($# > 0)); do
  case $1 in
    --require) IFS=, read -ra required <<<"$2"; shift 2 ;;
    --quick) quick=true; mutants=false; shift ;;
    --without-mutants) mutants=false; shift ;;
    --mutants) mutants=only; shift ;;
    *) echo "usage: run-tests.sh [--require NAME,NAME] [--quick | --without-mutants | --mutants]" >&2; exit 2 ;;
  esac
done

# Written once the packages are complete and built.
installed=js/node_modules/.installed
if [[ $mutants == only ]]; then
  echo "Waiting for the packages of the SDKs"
  for ((second = 0; second < 900; second++)); do
    [[ -f $installed ]] && break
    sleep 1
  done
  exec node conformance/mutants.mjs
fi

# Chromium without windows needs a third less of the processors.
chromium=${CHROMIUM:-/usr/bin/chromium-headless-shell}
[[ -x $chromium ]] || chromium=/usr/bin/chromium
export CHROMIUM=$chromium
has_node() { command -v node >/dev/null && command -v npm >/dev/null; }
has_react-native() { has_node; }
has_web() { has_node && [[ -x $chromium ]]; }
has_nextjs() { has_web; }
has_kotlin() { has_node && command -v mvn >/dev/null && command -v javac >/dev/null; }
dart_parser=$HOME/.cache/tributary/dart-parser/bin/python
has_flutter() { has_node && [[ -x $dart_parser ]] && "$dart_parser" -c 'import tree_sitter_dart' 2>/dev/null; }
has_swift() { has_node && swift/with-swift.sh --check; }

# An SDK outside the npm workspace has functions of its own.
test_kotlin() {
  (cd kotlin && mvn -B -Dorg.slf4j.simpleLogger.defaultLogLevel=warn verify)
  node --test kotlin/test/*.test.mjs
}
test_react-native() {
  (cd js && npm run -s test:react-native)
  node --test js/react-native/test/release.test.mjs
}
e2e_kotlin() { (cd kotlin && mvn -B -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -Pe2e verify); }
test_swift() { node --test swift/test/*.test.mjs; }
e2e_swift() { node --test swift/test/end-to-end.mjs; }
# The examples of servers have packages of their own.
e2e_node() {
  (cd js && npm run -s test:e2e:node)
  for name in express koa; do (cd "examples/$name" && npm ci --no-audit --no-fund); done
  node --test examples/servers.test.mjs
}
test_nextjs() { (cd examples/nextjs && npm ci --no-audit --no-fund); }
e2e_nextjs() { (cd examples/nextjs && npm test); }
test_flutter() { "$dart_parser" flutter/test/check.py && node --test flutter/test/*.test.mjs; }
e2e_flutter() { echo "Left out: there is no Flutter here."; }
run() {
  if declare -F "$1_$2" >/dev/null; then "$1_$2"; else (cd js && npm run -s "$3:$2"); fi
}
# The time of each part, which is printed at the end.
times=()
begun=$SECONDS
note_time() {
  times+=("$(printf '%5d s  %s' "$((SECONDS - begun))" "$1")")
  begun=$SECONDS
}
# In no condition, where `set -e` does not hold.
attempt() {
  set +e
  (set -e; run "$@")
  status=$?
  set -e
}
# With CI=true, tests that fail run once more: a defect fails again, and the name of a race is printed, since it is to be repaired.
failed_once=()
run_twice() {
  attempt "$@"
  if ((status != 0)) && [[ ${CI:-} == true ]]; then
    echo "--- $2, a second time"
    attempt "$@"
    if ((status == 0)); then failed_once+=("$2"); fi
  fi
  return "$status"
}

left_out=()
names=()
for name in "${all[@]}"; do
  if "has_$name"; then names+=("$name"); else left_out+=("$name"); fi
done
for name in ${left_out[@]+"${left_out[@]}"}; do
  if [[ " ${required[*]-} " == *" $name "* ]]; then
    echo "The toolchain of the SDK \"$name\" is missing (web needs Chromium at $chromium, kotlin needs Maven and a JDK, swift sdks/swift/install-toolchain.sh, flutter sdks/flutter/install-parser.sh)." >&2
    exit 1
  fi
done

if ((${#names[@]} > 0)); then
  rm -f "$installed"
  (cd js/test/tools && npm ci --no-audit --no-fund)
  (cd js && npm ci --no-audit --no-fund && npm run -s check && npm run -s build && node --test test/*.test.mjs)
  touch "$installed"
  note_time 'installation and build'
fi
for name in ${names[@]+"${names[@]}"}; do
  echo "--- $name"
  run_twice test "$name" test
  note_time "$name"
done
if [[ $quick == false ]]; then
  if [[ ! -f ../dist/src/main.js ]]; then
    echo "Build the service first: npm ci && npm run build at the root. Or pass --quick." >&2
    exit 1
  fi
  for name in ${names[@]+"${names[@]}"}; do
    echo "--- $name, end to end"
    run_twice e2e "$name" test:e2e
    note_time "$name, end to end"
  done
  echo "--- scripted answers and the service"
  node conformance/verify-real.mjs
  note_time 'scripted answers and the service'
fi
if [[ $mutants == true ]]; then
  echo "--- mutants"
  node conformance/mutants.mjs
  note_time 'mutants'
fi
# Names what was checked: not every name stands for tests that ran.
checked=()
for name in ${names[@]+"${names[@]}"}; do
  case $name in
    flutter) checked+=("flutter (Dart files parsed, not run; the files of a release)") ;;
    nextjs) if [[ $quick == true ]]; then checked+=("nextjs (packages installed, no test ran)"); else checked+=("nextjs (end to end)"); fi ;;
    *) if [[ $quick == true ]]; then checked+=("$name"); else checked+=("$name (also end to end)"); fi ;;
  esac
done
if ((${#failed_once[@]} > 0)); then echo "Failed once, to be repaired: ${failed_once[*]}"; fi
if ((${#times[@]} > 0)); then
  echo "Time of each part:"
  printf '%s\n' "${times[@]}"
fi
printf -v list '%s, ' "${checked[@]-none}"
echo "Tested: ${list%, }. Left out: ${left_out[*]-none}."
