"""How many tokens a text is, by o200k from npm's gpt-tokenizer, which brings its vocabulary along."""

import json
import subprocess
from collections.abc import Sequence

from benchmarks.absence import NotAvailable
from benchmarks.peers import typescript_setup

PACKAGE = "gpt-tokenizer@3"
_COUNT = """
const { countTokens } = require('gpt-tokenizer/encoding/o200k_base');
const texts = JSON.parse(require('fs').readFileSync(0, 'utf8'));
console.log(JSON.stringify(texts.map(text => countTokens(text))));
"""


def count(texts: Sequence[str]) -> list[int]:
    """Of each; NotAvailable where there is no Node, or no npm to bring the package."""
    folder = typescript_setup.CACHE / "tokens"
    if not (folder / "node_modules" / "gpt-tokenizer").is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text('{"private": true}')
        typescript_setup._npm_install(folder, PACKAGE)  # noqa: SLF001 - its other use
    ran = subprocess.run(
        [typescript_setup.node(), "-e", _COUNT],
        cwd=folder,
        input=json.dumps(list(texts)),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if ran.returncode:
        raise NotAvailable(f"gpt-tokenizer does not run: {ran.stderr.strip()[-200:]}")
    counted: list[int] = json.loads(ran.stdout)
    return counted
