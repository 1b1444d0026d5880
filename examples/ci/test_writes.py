"""A budget of writes: a change that writes a fifth more to the flash fails.

``python -m pytest --record-budget`` writes the budget anew, for a change that is worth what it costs; the file belongs
to the change, so that whoever reviews it sees both.
"""

import json
import os
from pathlib import Path

import pytest
from notes import Notes

from flashwright import ServedDrive

BUDGET = Path(__file__).with_name("budget.json")
MORE = 1.2
ADDS, NOTES = 40, 50


@pytest.mark.flashwright(set=["geometry.blocks-per-plane=64"], precondition="random")
def test_what_notes_cost_the_drive(
    flashwright_drive: ServedDrive, folder_on_drive: Path, pytestconfig: pytest.Config
) -> None:
    os.sync()
    before = flashwright_drive.bytes_to_flash
    notes = Notes(folder_on_drive)
    for number in range(ADDS):
        notes.add(f"note {number}.{n}: " + 200 * "x" for n in range(NOTES))
    assert notes.count() == ADDS * NOTES
    notes.close()
    os.sync()
    written = flashwright_drive.bytes_to_flash - before
    if pytestconfig.getoption("record_budget"):
        BUDGET.write_text(json.dumps({"bytes_to_flash": written}) + "\n", encoding="utf-8")
    budget = json.loads(BUDGET.read_text(encoding="utf-8"))["bytes_to_flash"]
    assert written <= MORE * budget, (
        f"{written:,} bytes to flash, {written / budget:.2f} times the budget"
    )
