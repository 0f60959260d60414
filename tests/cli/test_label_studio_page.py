"""The commands of docs/label_studio.md are run as they stand there."""

import re
import shlex
from pathlib import Path

from tests.cli.cli_cases import run

PAGE = (Path(__file__).parents[2] / "docs" / "label_studio.md").read_text()


def test_the_commands_run_and_write_what_the_page_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    commands = [line for block in re.findall(r"```bash\n(.*?)```", PAGE, re.S) for line in block.splitlines()]
    assert len(commands) == 5
    for line in commands:
        answer = run(shlex.split(line)[1:])
        assert answer.code == 0, (line, answer.err)
    written = {str(path.relative_to(tmp_path)) for path in tmp_path.glob("*-tasks/*")}
    assert written == {
        *("tumours-tasks/tasks.json", "tumours-tasks/config.xml", "argilla-tasks/records.json"),
        *("argilla-tasks/settings.json", "doccano-tasks/rows.jsonl", "doccano-tasks/labels.json"),
    }
    assert '"model_version": "stakes-40"' in (tmp_path / "tumours-tasks" / "tasks.json").read_text()
    assert "stakes-40" in PAGE
