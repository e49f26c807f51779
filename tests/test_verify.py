"""Promise: `verify` compares with digests that the package had no hand in, says what differs, and
two machines can compare their proofs with each other.
"""

import copy
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import onemodel
from onemodel import augment, transforms
from onemodel._cli import verify
from onemodel._cli.main import main
from onemodel._simd import dispatch

ROOT = Path(__file__).parents[1]


def test_verify_finds_this_machine_canonical(capsys):
    assert main(["verify"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 80
    assert all(line.startswith("same  ") for line in lines[:-1])
    count = len(lines) - 1
    assert lines[-1].startswith(f"{count} of {count} batches are the same, byte for byte. onemodel")


def test_verify_shows_what_differs(capsys, monkeypatch):
    table = copy.deepcopy(verify.canonical())
    del table["configurations"][3:]
    table["configurations"][0]["seed"] += 1  # sequential, no augmentation: the seed has no say
    table["configurations"][1]["seed"] += 1
    table["configurations"][2]["sampler"]["batch_size"] = 0
    monkeypatch.setattr(verify, "canonical", lambda: table)
    assert main(["verify"]) == 1
    out = capsys.readouterr().out
    assert len(re.findall("^same", out, re.MULTILINE)) == 6
    assert len(re.findall("^DIFFERENT  [0-9a-f]{64}  ", out, re.MULTILINE)) == 6
    assert len(re.findall("^DIFFERENT  ValueError: batch_size must be", out, re.MULTILINE)) == 6
    assert "6 of 18 batches are the same" in out


def test_verify_covers_the_whole_face():
    configurations = verify.canonical()["configurations"]
    assert {c["sampler"]["kind"] for c in configurations} == {
        "sequential",
        "shuffled",
        "mixing",
        "bucketed",
        "weighted",
        "budget",
    }
    assert {len(c["collate"]["augment"]) > 0 for c in configurations if c["collate"]} == {
        True,
        False,
    }
    assert {c["collate"] is None for c in configurations} == {True, False}
    assert {c["workers"] > 0 for c in configurations} == {True, False}
    assert {c["transform"] == [] for c in configurations} == {True, False}
    assert len({c["name"] for c in configurations}) == len(configurations)
    parts = [part for c in configurations for part in c["transform"]]
    parts += [part for c in configurations if c["collate"] for part in c["collate"]["augment"]]
    native = {*augment.__all__, *transforms.__all__} - {"NativeAugmentation", "Compose"}
    assert native <= {part["kind"] for part in parts}


def test_the_digests_come_from_the_twins_alone(needs_subprocess):
    code = (
        "import runpy, sys\n"
        "sys.argv = ['make_canonical.py', '--check']\n"
        "try:\n"
        "    runpy.run_path(sys.argv[0], run_name='__main__')\n"
        "finally:\n"
        "    print([name for name in sys.modules if name.partition('.')[0] == 'onemodel'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT / "tools", capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


# --json and --compare


@pytest.fixture
def short(monkeypatch):
    """The canonical table, cut to its first two configurations: what may be changed by a test."""
    table = copy.deepcopy(verify.canonical())
    del table["configurations"][2:]
    monkeypatch.setattr(verify, "canonical", lambda: table)
    return table


def json_of(capsys):
    code = main(["verify", "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_json_says_what_ran_and_what_came(short, capsys):
    code, report = json_of(capsys)
    assert code == 0
    assert (report["format"], report["version"]) == ("onemodel.verify", 1)
    assert report["algorithm"] == short["algorithm"]
    assert (report["same"], report["total"]) == (12, 12)
    machine = report["machine"]
    assert machine["onemodel"] == onemodel.__version__
    assert machine["vectors"] == dispatch.selected()
    assert machine["byte_order"] == sys.byteorder
    assert {"numpy", "python", "python_compiler", "compiler", "platform", "machine"} < set(machine)
    assert machine["compiler"] is None or re.match(r"GCC|clang", machine["compiler"])
    first = report["batches"][0]
    step, digest = next(iter(short["configurations"][0]["digests"].items()))
    assert first == {
        "configuration": short["configurations"][0]["name"],
        "step": int(step),
        "expected": digest,
        "found": digest,
        "same": True,
    }


def test_json_tells_a_difference_by_exit_code_too(short, capsys):
    short["configurations"][1]["seed"] += 1
    code, report = json_of(capsys)
    assert code == 1
    assert (report["same"], report["total"]) == (6, 12)
    assert [batch["same"] for batch in report["batches"]] == [True] * 6 + [False] * 6


def test_compare_with_a_machine_that_gives_the_same(short, capsys, tmp_path):
    main(["verify", "--json"])
    (tmp_path / "there.json").write_text(capsys.readouterr().out)
    assert main(["verify", "--compare", str(tmp_path / "there.json")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("12 of 12 batches are the same as on ")


def test_compare_names_the_batches_that_differ(short, capsys, tmp_path):
    _, report = json_of(capsys)
    first, second, third = report["batches"][:3]
    first["found"] = "0" * 64
    second["found"] = "ValueError: no"
    report["batches"].remove(third)
    report["batches"].append({**third, "configuration": "unknown here", "step": 5})
    report["algorithm"] = 99
    (tmp_path / "there.json").write_text(json.dumps(report))
    assert main(["verify", "--compare", str(tmp_path / "there.json")]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert re.search(r"there\.json: algorithm 99, here ", lines[0])
    name, digest = first["configuration"], first["expected"]
    assert lines[1] == (f"DIFFERENT  {name}, step {first['step']}: here {digest}, there {'0' * 64}")
    assert lines[2].endswith(f"here {second['expected']}, there ValueError: no")
    assert lines[3].endswith(f"here {third['expected']}, there none")
    assert lines[4] == f"DIFFERENT  unknown here, step 5: here none, there {third['expected']}"
    assert lines[5].startswith("9 of 13 batches are the same as on ")


def test_compare_takes_two_equal_errors_for_no_proof(short, capsys, tmp_path):
    short["configurations"][1]["sampler"]["batch_size"] = 0
    _, report = json_of(capsys)
    assert report["batches"][-1]["found"].startswith("ValueError: batch_size must be")
    (tmp_path / "there.json").write_text(json.dumps(report))
    assert main(["verify", "--compare", str(tmp_path / "there.json")]) == 1
    assert "6 of 12 batches are the same as on" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "expected JSON text, found"),
        ("[" * 100_000, "expected JSON text, found"),
        ("[]", "expected what `onemodel verify --json` prints, version 1, found"),
        ('{"format": "onemodel.verify", "version": 2}', "version 1, found"),
        ('{"format": "onemodel.verify", "version": 1}', "expected a machine and a list of batches"),
        (
            '{"format": "onemodel.verify", "version": 1, "machine": {}, "batches": [{"step": 1}]}',
            "expected a machine and a list of batches",
        ),
    ],
)
def test_compare_with_another_file(short, capsys, tmp_path, text, message):
    (tmp_path / "there.json").write_text(text)
    assert main(["verify", "--compare", str(tmp_path / "there.json")]) == 2
    errors = capsys.readouterr().err
    assert "there.json" in errors
    assert message in errors


def test_help_says_what_json_and_compare_do(capsys):
    with pytest.raises(SystemExit):
        main(["verify", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "platform, Python, NumPy, compiler if it is known, vectors in use" in text
    assert "Says which batches differ; exit code 1 if any does" in text
