"""Checks the plugin as far as that is possible without Dart: the syntax of the Dart files and snippets, the version, and that
Dart, Kotlin and Swift name the same methods. Needs tree-sitter and tree-sitter-dart."""

import re
import sys
from pathlib import Path

import tree_sitter_dart
from tree_sitter import Language, Parser

ROOT = Path(__file__).resolve().parent.parent
parser = Parser(Language(tree_sitter_dart.language()))
problems = []


def check_syntax(name, source):
    tree = parser.parse(source.encode())
    if not tree.root_node.has_error:
        return
    nodes = [tree.root_node]
    while nodes:
        node = nodes.pop()
        if node.is_error or node.is_missing:
            line = node.start_point[0] + 1
            problems.append(f"{name}:{line}: {source.splitlines()[line - 1].strip()}")
        nodes.extend(node.children)


files = sorted([*ROOT.glob("lib/**/*.dart"), *ROOT.glob("example/lib/**/*.dart")])
for path in files:
    check_syntax(str(path.relative_to(ROOT)), path.read_text())
snippets = re.findall(r"```dart\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
for number, snippet in enumerate(snippets, 1):
    check_syntax(f"README.md, snippet {number}", snippet)
if len(files) < 2 or len(snippets) < 2:
    problems.append(f"Only {len(files)} files and {len(snippets)} snippets were found.")

stated = re.search(r"^version: (.*)$", (ROOT / "pubspec.yaml").read_text(), re.M).group(1)
version = (ROOT.parent / "VERSION").read_text().strip()
if stated != version:
    problems.append(f"pubspec.yaml says {stated}, and VERSION says {version}.")

dart = (ROOT / "lib/tributary_flutter.dart").read_text()
kotlin = next(ROOT.glob("android/**/TributaryFlutterPlugin.kt")).read_text()
swift = next(ROOT.glob("ios/**/TributaryFlutterPlugin.swift")).read_text()
methods = {
    "Dart": set(re.findall(r"_(?:isTrue|call<\w+>)\('(\w+)'", dart)),
    "Kotlin": set(re.findall(r'^ {12}"(\w+)" ->', kotlin, re.M)),
    "Swift": set(re.findall(r'case "(\w+)"', swift)),
}
if len({frozenset(names) for names in methods.values()}) != 1 or len(methods["Dart"]) != 9:
    problems.append(f"The sides name different methods: {methods}")

for problem in problems:
    print(problem)
print(f"Flutter: {len(files)} Dart files and {len(snippets)} snippets parsed, {len(problems)} problems.")
sys.exit(1 if problems else 0)
