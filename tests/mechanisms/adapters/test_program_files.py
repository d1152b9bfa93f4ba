"""Commands with placeholders: what reaches the program, what is read back, and misbehaviour.

Every misbehaviour is one sentence within the time limit, and leaves no process and no file behind.
"""

import datetime
import inspect
import json
import math
import os
import signal
import sys
import tempfile
import threading
from decimal import Decimal
from pathlib import Path

import cloudpickle
import numpy as np
import pytest

from dpaudit import Verdict, check
from dpaudit.audit.errors import DatasetError, MechanismError
from dpaudit.audit.sampling.object_identity import provenance_of
from dpaudit.mechanisms.adapters import Program, data_files
from dpaudit.mechanisms.adapters import program as programs
from dpaudit.mechanisms.adapters.data_files import content_of, dataset_in, output_in

from ... import processes

NAN, INF = math.nan, math.inf
LOOP: list = []
LOOP.append(LOOP)


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """A temporary folder with a space in its name, which is empty in the end."""
    folder = tmp_path / "with space"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


def python(code, *words, **options):
    """A program in Python, which sees its arguments as `a`."""
    start = "import os, sys; a = sys.argv[1:]\n"
    return Program(
        [sys.executable, "-I", "-S", "-c", start + code, *words], **{"name": "box", "seconds": 10.0} | options
    )


def draw(program, dataset=((31.0, "Bern"), (57.0, "Oslo")), size=1):
    return program.sample(dataset, size, np.random.default_rng(1))


# Datasets as files.

ROWS = [{"age": 31, "city": "Bern, BE"}, {"age": None, "city": ""}, {"age": 0.1 + 0.2, "city": 'say "é"\n'}]


@pytest.mark.parametrize(
    ("dataset", "ending", "text"),
    [
        (ROWS, "csv", 'age,city\n31,"Bern, BE"\n,""\n0.30000000000000004,"say ""é""\n"\n'),
        (ROWS, "tsv", 'age\tcity\n31\tBern, BE\n\t""\n0.30000000000000004\t"say ""é""\n"\n'),
        (ROWS[:2], "jsonl", '{"age": 31, "city": "Bern, BE"}\n{"age": null, "city": ""}\n'),
        ([NAN, INF, -INF, None, -0.0, 1e300, 2**70, True], "csv",
         f'NaN\nInfinity\n-Infinity\n""\n-0.0\n1e+300\n{2**70}\nTrue\n'),
        ([NAN, -INF, None], "json", "[NaN, -Infinity, null]"),
        ([NAN, -INF, None], "jsonl", "NaN\n-Infinity\nnull\n"),
        ([NAN, "a,b", None], "txt", "NaN\na,b\n\n"),
        ("any text", "txt", "any text"),
        ([], "csv", ""),
        ({"age": []}, "csv", "age\n"),
        ({"age": [1, 2], "name": np.array(["a", "b"])}, "csv", "age,name\n1,a\n2,b\n"),
        ([{"a": 1}, {"b": 2}], "csv", "a,b\n1,\n,2\n"),
        (np.array([[1.5, NAN], [2, 3]]), "csv", "1.5,NaN\n2.0,3.0\n"),
        (np.array([(1, "x")], dtype=[("n", int), ("s", "U1")]), "csv", "n,s\n1,x\n"),
        (np.array(["2024-05-06"], dtype="M8[ns]"), "csv", "2024-05-06T00:00:00.000000000\n"),
        ([(datetime.date(2024, 5, 6), Decimal("1.50"))], "csv", "2024-05-06,1.50\n"),
        (np.float32(0.1), "csv", "0.10000000149011612\n"),
        (np.float32(0.5), "json", "0.5"),
        (np.array(3), "json", "3"),
        (np.array([[True], [False]]), "json", "[[true], [false]]"),
        (np.array(["a", None], dtype=object), "json", '["a", null]'),
        ((1, ("b", None)), "json", '[1, ["b", null]]'),
        ({"a\n": "\ud800é"}, "json", r'{"a\n": "\ud800\u00e9"}'),
    ],
)  # fmt: skip
def test_datasets_as_files(dataset, ending, text):
    assert content_of(dataset, ending).decode() == text


def test_frames_as_files():
    pandas = pytest.importorskip("pandas")
    columns = {"n": pandas.array([1, None], dtype="Int64"), "f": [1.0, None], "s": ["a", None]}
    frame = pandas.DataFrame(columns | {"t": pandas.to_datetime(["2024-05-06", None])}, index=[7, 9])
    assert content_of(frame, "csv") == b"n,f,s,t\n1,1.0,a,2024-05-06 00:00:00\n,,,\n"
    assert json.loads(content_of(frame[["n", "f"]], "json")) == [{"n": 1, "f": 1.0}, {"n": None, "f": None}]
    assert content_of(frame[["f"]], "csv") == b'f\n1.0\n""\n'  # no reader of CSV skips this row
    assert content_of(frame[:0], "csv") == b"n,f,s,t\n"
    with pytest.raises(DatasetError, match="two columns of a frame have one name"):
        content_of(frame[["f", "f"]], "json")


def test_what_is_written_is_read_again():
    """Also the sign of zero, every digit, and the difference between a missing value and NaN."""
    rng = np.random.default_rng(3)
    numbers = [*rng.integers(0, 2**64, 200, dtype=np.uint64).view(np.float64).tolist(), NAN, INF, -INF, -0.0, None, 7]
    table = {"x": numbers, "name": [f'{place},"\n\té' for place in range(len(numbers))]}
    for ending in ("csv", "tsv", "json"):
        assert repr(output_in(content_of(table, ending), ending)) == repr(table)
    lines = output_in(content_of(table, "jsonl"), "jsonl")
    assert repr([line["x"] for line in lines]) == repr(numbers)


@pytest.mark.parametrize(
    ("ending", "text"),
    [
        ("csv", "age,name\n31,a\n007,3.50\n,NaN\n"),
        ("csv", "1,2.0\n3,1e5\n"),
        ("tsv", "city\n"),
        ("csv", 'n\n""\n"a\r\nb"\n'),
        ("csv", "a\n Bern\n  \n"),
        ("csv", ""),
        ("txt", "one\u2028two\n\nthree\n"),
        ("txt", ""),
        ("json", '[{"a": 1}, NaN]'),
        ("jsonl", '{"a": 1}\nNaN\n'),
    ],
)
def test_a_program_gets_the_text_of_the_file(tmp_path, ending, text):
    path = tmp_path / f"x.{ending}"
    path.write_bytes(text.encode())
    assert content_of(dataset_in(path), ending).decode() == text


@pytest.mark.parametrize(
    ("dataset", "ending", "message"),
    [
        ([[1, 2], [3]], "csv", r"the table has 2 columns, and dataset\[1\] has 1; use rows"),
        ([[1, [2]]], "csv", "a cell of the dataset is a list; use numbers"),
        ({"a": 5}, "csv", "the dataset is a dict and not a table"),
        ("text", "csv", "the dataset is a str and not a table"),
        ({"rows": [{1, 2}]}, "json", r"dataset\['rows'\]\[0\] is a set, which no file can hold"),
        ({1: 2}, "json", "dataset is a dict with keys other than strings"),
        (b"x", "json", "dataset is a bytes"),
        (LOOP, "json", "holds itself"),
        (["\ud800"], "csv", r"the character '\\ud800', which encoding='utf-8' lacks"),
    ],
)
def test_datasets_that_no_file_holds(dataset, ending, message):
    with pytest.raises(DatasetError, match=message):
        content_of(dataset, ending)


# Outputs from files.


@pytest.mark.parametrize(
    ("text", "ending", "output"),
    [
        ("city,n\r\nBern,3.5\r\nOslo,\r\n", "csv", {"city": ["Bern", "Oslo"], "n": [3.5, None]}),
        ("n\nNaN\ninf\n-Inf\n.5\n+2\n1e3\nNA\n1_0\n", "csv", {"n": [NAN, INF, -INF, 0.5, 2, 1000.0, "NA", "1_0"]}),
        ("3.5\n", "csv", 3.5),
        ("3,4\n", "csv", [3, 4]),
        ("3\n4\n", "csv", [[3], [4]]),
        ("Bern,3\nOslo,4\n", "csv", [["Bern", 3], ["Oslo", 4]]),
        ("", "csv", []),
        ("\ufeffn\n1\n", "csv", {"n": [1]}),
        ('{"n": [NaN, -Infinity]}', "json", {"n": [NAN, -INF]}),
        (" 3.5\r\n", "json", 3.5),
        ("-Inf\n", "json", -INF),
        (".5", "json", 0.5),
        ('1\r\n\n"a\u2028b"\n', "jsonl", [1, "a\u2028b"]),
        ("two\nlines\n", "txt", "two\nlines"),
        ("", "txt", ""),
    ],
)
def test_outputs_in_files(text, ending, output):
    assert repr(output_in(text.encode(), ending)) == repr(output)


# Commands.


def test_the_program_sees_its_files_and_each_run_has_its_own():
    code = "import json; print(json.dumps([open(a[0]).read(), a[1], os.path.basename(a[0])]))"
    outputs = draw(python(code, "{input.csv}", "{seed}"), size=2)
    assert [output[0::2] for output in outputs] == [["31.0,Bern\n57.0,Oslo\n", "input.csv"]] * 2
    seeds = np.random.default_rng(1).integers(2**31, size=2)
    assert [int(output[1]) for output in outputs] == seeds.tolist()
    code = "p = a[0] + '.mark'; assert not os.path.exists(p); open(p, 'w'); open(a[0], 'a').write('x'); print(1)"
    assert draw(python(code, "{input.csv}"), size=3) == [1, 1, 1]


@pytest.mark.parametrize(
    ("words", "output"),
    [
        (["{input.csv}", "{output.csv}"], [["31.0", "Bern"], ["57.0", "Oslo"]]),
        (["<", "{input.csv}", ">", "{output.txt}"], "31.0,Bern\n57.0,Oslo"),
        (["<", "{input.json}"], [[31.0, "Bern"], [57.0, "Oslo"]]),
    ],
)
def test_ways_in_and_out(words, output):
    code = (
        "(open(a[1], 'wb') if a[1:] else sys.stdout.buffer).write((open(a[0], 'rb') if a else sys.stdin.buffer).read())"
    )
    (found,) = draw(python(code, *words))
    assert found == (output if not isinstance(output[0], list) else [[31.0, "Bern"], [57.0, "Oslo"]])


def test_folders_of_tables():
    code = "for n in sorted(os.listdir(a[0])): open(a[1] + n, 'wb').write(open(a[0] + n, 'rb').read())"
    (found,) = draw(python(code, "{input/}", "{output/}"), {"users": {"a": [1, None]}, "notes.json": ["x"]})
    assert found == {"notes.json": ["x"], "users.csv": {"a": [1, None]}}
    for wrong in ([1], {"../x": [1]}, {1: [1]}):
        with pytest.raises(DatasetError, match="needs a dict of tables whose keys are names of files"):
            draw(python(code, "{input/}", "{output/}"), wrong)


def test_names_of_columns_of_no_rows():
    program = python("print(repr(open(a[0]).read()).replace(chr(39), chr(34)))", "{input.csv}", columns=["age", "city"])
    assert draw(program, []) == ["age,city\n"]
    assert draw(program) == ["age,city\n31.0,Bern\n57.0,Oslo\n"]
    assert cloudpickle.loads(cloudpickle.dumps(program)) == program


def test_another_encoding():
    program = python("sys.stdout.buffer.write(open(a[0], 'rb').read())", "{input.csv}", ">", "{output.txt}")
    for encoding in ("utf-8", "latin-1", "utf-16"):
        object.__setattr__(program, "encoding", encoding)
        assert draw(program, ["é"]) == ["é"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["{x.csv}"], r"the unknown placeholder \{x.csv\}; use \{input.…\} and"),
        (["{input.xml}"], r"the unknown placeholder \{input.xml\}"),
        (["{tables/}"], r"the unknown placeholder \{tables/\}"),
        (["{input}"], r"the unknown placeholder \{input\}"),
        (["{output.tar.gz}"], r"the unknown placeholder \{output.tar.gz\}"),
        (["{seed}"], r"gives the program no dataset; name a file with \{input.csv\}"),
        ([">", "{output.csv}"], "gives the program no dataset"),
        (["{input.csv}", "{output.csv}", ">", "{output.json}"], "has several outputs"),
    ],
)
def test_placeholders_are_checked(words, message):
    with pytest.raises(MechanismError, match=message):
        Program(["box", *words])


def test_braces_of_languages_are_left_alone():
    assert draw(Program(["awk", "-F,", "{ s += $1 } END { print s }", "{input.csv}"])) == [88]
    unspaced = "{output++} {input+=$1} {output/=1} END{print output+input}"
    assert draw(Program(["awk", "-F,", unspaced, "{input.csv}"])) == [90]
    assert not Program(["node", "-e", "`${row.csv} ${a/b}`"]).takes_files


# Misbehaviour.

CSV, FILE, JSON = ("{input.csv}", ">", "{output.csv}"), ("{input.csv}", "{output.csv}"), ("{input.csv}",)
MISBEHAVING = {
    "prints nothing": ("", JSON, "wrote nothing to its output, in a run; let it write a number or JSON alone"),
    "writes no file": ("print(5)", FILE, r"ended without writing \{output.csv\}, in a run; let it write the path"),
    "writes another file": ("open(a[1] + '2', 'w').write('3')", FILE, r"ended without writing \{output.csv\}"),
    "writes no file into the folder": ("", ("{input/}", "{output/}"), r"ended without writing \{output/\}"),
    "half a line of JSON": ("print('[1, 2')", JSON, r"wrote '\[1, 2\\n', which is not JSON"),
    "half a row": ("print('a,b\\n1')", CSV, "wrote a table with 2 columns, whose line 2 has 1"),
    "an open quote": ("print('a,b\\n\"1,2')", CSV, "which is not a table"),
    "logs before the output": ("print('Log'); print(3)", JSON, r"'Log\\n3\\n', which is not JSON .*, and logs to"),
    "a huge cell": ("print('x' * 10**6)", CSV, r"wrote 'x{60}…', which is not a table \(field larger"),
    "not UTF-8": ("sys.stdout.buffer.write(b'caf\\xe9')", CSV, r'which is not UTF-8, .*encoding="latin-1"'),
    "nested too deeply": ("print('[' * 10**5)", JSON, "which is nested too deeply"),
    "fails": ("sys.exit('no column \\x1b[31m age')", JSON, r"ended with status 1, .* with 'no column \\x1b\[31m age'"),
    "is killed": ("os.kill(os.getpid(), 9)", JSON, "was ended by SIGKILL, in a run; let it end with status 0"),
    "a pipe as its output": ("os.mkfifo(a[1])", FILE, r"wrote output.csv, which cannot be read \(it is a pipe"),
    "a folder as its output": ("os.mkdir(a[1])", FILE, "which cannot be read"),
    "deletes its folder": ("import shutil; shutil.rmtree(os.path.dirname(a[0]))", FILE, "ended without writing"),
    "takes too long": ("import time; print(1, flush=True); time.sleep(99)", JSON, "did not end within 0.3 seconds"),
    "prints without end": ("while True: print('x' * 10**5)", JSON, "wrote more than 1,048,576 bytes"),
    "writes without end": ("f = open(a[1], 'w')\nwhile True: f.write('x' * 10**5)", FILE, "wrote more than 1,048,576"),
}  # fmt: skip


@pytest.mark.parametrize(("code", "words", "message"), MISBEHAVING.values(), ids=MISBEHAVING)
def test_misbehaviour_is_a_sentence(code, words, message, monkeypatch):
    monkeypatch.setattr(data_files, "MOST_BYTES", 1 << 20)
    monkeypatch.setattr(programs, "_LOOK", 0.1)
    program = python(code, *words, seconds=0.3 if "0.3" in message else 10.0)
    with pytest.raises(MechanismError, match=message) as caught:
        draw(program, {"rows": [1]})
    text = str(caught.value)
    assert text.startswith("box ")
    assert sys.executable in text
    assert text.isprintable()


def test_a_failed_run_names_the_seed_and_may_be_an_output():
    code = "sys.exit(int(a[1]) % 2)"
    with pytest.raises(MechanismError, match=r"ended with status 1 \(2 times\), in a run with seed \d+;") as caught:
        draw(python(code, "{input.csv}", "{seed}", ">", "{output.txt}", retries=1), size=20)
    assert caught.value.facts["seed"] % 2 == caught.value.facts["status"] == 1
    outputs = draw(python(code, "{input.csv}", "{seed}", ">", "{output.txt}", failures="output"), size=20)
    seeds = np.random.default_rng(1).integers(2**31, size=20)
    assert [str(output) for output in outputs] == ["raises exit status 1" if odd else "" for odd in seeds % 2]


def test_what_a_run_starts_ends_with_the_runs():
    code = (
        "import subprocess\nif os.fork() == 0:\n    os.setsid()\n    os.execvp('sleep', ['sleep', '99'])\n"
        "child = subprocess.Popen(['sleep', '99'])\nprint(child.pid)"
    )
    (child,) = draw(python(code, "{input.csv}"))  # which is not waited for, although it holds the output open
    assert processes.has_ended(child)


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="the system does not show the environment")
def test_what_a_run_starts_in_another_session_ends_with_the_run(tmp_path):
    code = f"""
import subprocess

{inspect.getsource(processes)}
with open({str(tmp_path / "numbers")!r}, "a+") as file:
    file.seek(0)
    alive = [not has_ended(number) for number in file.read().split()]
    print(subprocess.Popen(["sleep", "99"], start_new_session=True).pid, file=file)
print(sum(alive))
"""
    assert draw(python(code, "{input.csv}"), size=3) == [0, 0, 0]


def test_a_program_in_a_folder_with_a_space(temporary, tmp_path):
    folder = tmp_path / "my programs"
    folder.mkdir()
    (folder / "my count.awk").write_text("END { print NR }")
    program = Program(["awk", "-f", "my count.awk", "{input.csv}"], folder=folder)
    assert draw(program, size=2) == [2, 2]
    assert str(program) == "awk -f 'my count.awk' {input.csv}"


def test_a_stop_of_the_audit_ends_the_program(temporary):
    class Stop(BaseException):
        pass

    def stop(*_):
        raise Stop

    def interrupt():
        while not list(temporary.glob("*/ready")):
            pass
        os.kill(os.getpid(), 10)

    before = signal.signal(signal.SIGUSR1, stop)
    try:
        thread = threading.Thread(target=interrupt)
        thread.start()
        code = "open(os.path.dirname(a[0]) + '/ready', 'w'); import time; time.sleep(99)"
        with pytest.raises(Stop):
            draw(python(code, "{input.csv}"))
        thread.join()
    finally:
        signal.signal(signal.SIGUSR1, before)


# Audits.

COUNT = """BEGIN { FS = ","; if (seed) srand(seed) } NR > 1 { n++ }
END { do u = rand() - 0.5; while (u == -0.5); print n + (u < 0 ? scale : -scale) * log(1 - 2 * (u < 0 ? -u : u)) }"""


@pytest.mark.parametrize(("scale", "jobs"), [(1.0, 1), (0.2, 2)])
def test_audits_of_a_program_that_knows_nothing_of_them(scale, jobs):
    program = Program(["awk", "-v", "seed={seed}", "-v", f"scale={scale}", COUNT, "{input.csv}"], name="count.awk")
    x, y = {"age": [31, 57, None]}, {"age": [31, 57]}
    result = check(program, x, y, claim=1.0, adjacency="add-remove", runs=60, jobs=jobs, floating_point="ignore")
    assert (result.verdict is Verdict.REFUTED) == (scale < 1)
    assert result.bound > 0
    assert result.is_reproducible


def test_a_program_with_the_same_noise_in_every_run_is_noticed():
    program = Program(["awk", "-v", "seed=7", "-v", "scale=1", COUNT, "{input.csv}"], name="count.awk")
    result = check(program, {"age": [1, 2]}, {"age": [1]}, claim=1.0, adjacency="add-remove", runs=40)
    assert result.next_step == "draw new noise in every run, not from a fixed seed"


def test_the_fingerprint_in_results_is_that_of_the_program(tmp_path):
    script = tmp_path / "box.awk"
    prints = []
    for scale in (1, 2, 2):
        script.write_text(f"END {{ print {scale} * NR }}")
        prints.append(provenance_of(Program(["awk", "-f", str(script), "{input.csv}"])).fingerprint)
    assert prints[0] != prints[1] == prints[2]
