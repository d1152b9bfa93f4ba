"""Tables in files: what would lose a column or a row without a word is an error with the line."""

import io
import os
import zipfile

import numpy as np
import pytest

from dpaudit.audit.errors import DatasetError, OptionError
from dpaudit.reports.cli.dataset_arguments import read_dataset, read_scores


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("\n\nage,age\n1,2\n", "line 3: the name 'age' occurs 2 times"),
        ("a,2\n1,2\n3,4\n", "line 1: the name '2' is a number"),
        ("1,2\n3,4\n\nb,5\n", "begins with a line of numbers, and line 4 has text"),
        ("name,age\nann,3\n\nbob\n", "line 4: 1 cell, and 2 in line 1"),
        ('name\n"two\nlines"\nb,c\n', "line 4: 2 cells, and 1 in line 1"),
        ('name\n"ann\nbob\n', "line 3: unexpected end of data"),
    ],
)
def test_a_table_that_would_lose_something(tmp_path, content, message):
    (tmp_path / "x.csv").write_text(content)
    with pytest.raises(DatasetError, match=message):
        read_dataset(f"@{tmp_path}/x.csv")


def test_an_array_is_not_read_from_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "x.npy")
    for read in (lambda path: read_dataset(f"@{path}"), lambda path: read_scores([path], "score", "included")):
        with pytest.raises(DatasetError, match=r"x.npy cannot be read: it is a pipe"):
            read(tmp_path / "x.npy")


def test_tables_that_lose_nothing(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(b"\xef\xbb\xbf1,2\n3,4\n")
    assert np.array_equal(read_dataset(f"@{path}"), [[1, 2], [3, 4]])
    path.write_bytes(b"\xef\xbb\xbfage, name\n1,a\n")
    assert read_dataset(f"@{path}") == [{"age": "1", "name": "a"}]
    path.write_text("age\n1\n\n2\n")
    assert np.array_equal(read_dataset(f"@{path}"), [1, 2])
    path.write_text("age,name\n")
    assert read_dataset(f"@{path}") == []
    path.write_text("")
    with pytest.raises(DatasetError, match="is empty"):
        read_dataset(f"@{path}")
    np.save(tmp_path / "x.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(DatasetError, match="is not an array of numbers"):
        read_dataset(f"@{tmp_path}/x.npy")


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', '[{"age": [{"b": 1, "b": 2}]}]'])
def test_a_key_that_would_lose_a_value(tmp_path, text):
    (tmp_path / "x.json").write_text(text)
    for argument in (text, f"@{tmp_path}/x.json"):
        with pytest.raises(DatasetError, match=r"an object with the key '[ab]' more than once"):
            read_dataset(argument)


def test_arrays_of_the_same_name(tmp_path):
    content = io.BytesIO()
    np.save(content, np.ones(3))
    with zipfile.ZipFile(tmp_path / "scores.npz", "w") as file:
        file.writestr("included.npy", content.getvalue())
        file.writestr("score.npy", content.getvalue())
        with pytest.warns(UserWarning, match="Duplicate name"):
            file.writestr("score.npy", content.getvalue())
    with pytest.raises(DatasetError, match="it has 'score' more than once"):
        read_scores([tmp_path / "scores.npz"], "score", "included")
    with pytest.raises(OptionError, match="--score and --included both name the column 'score'"):
        read_scores([tmp_path / "scores.npz"], "score", "score")
