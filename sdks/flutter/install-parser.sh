#!/usr/bin/env bash
# Installs the parser that checks the syntax of the Dart files into ~/.cache/tributary/dart-parser, if it is not there.
set -euo pipefail
folder=$HOME/.cache/tributary/dart-parser
if "$folder/bin/python" -c 'import tree_sitter_dart' 2>/dev/null; then exit; fi
if ! python3 -m venv --clear "$folder"; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-venv
  python3 -m venv --clear "$folder"
fi
"$folder/bin/pip" install --quiet tree-sitter==0.26.1 tree-sitter-dart==0.1.0
