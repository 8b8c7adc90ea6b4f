"""The examples that users of pybloomfiltermmap and pybloomfiltermmap3 know, as written."""
import pickle

import pytest

import pybloomfilter


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_words_of_a_dictionary():
    with open("words", "w") as words:
        words.writelines(f"{word}\n" for word in ["apple", "banana", "cherry", "zwieback", "Ångström"])

    bf = pybloomfilter.BloomFilter(10000000, 0.01, 'filter.bloom')
    with open("words") as f:
        for word in f:
            bf.add(word.rstrip())
    assert 'apple' in bf
    assert 'Ångström' in bf
    assert 'zzz' not in bf


@pytest.mark.parametrize("add_all", ["update", "extend"])
def test_fruit(add_all):
    fruit = pybloomfilter.BloomFilter(100000, 0.1, 'words.bloom')
    getattr(fruit, add_all)(('apple', 'pear', 'orange', 'apple'))
    assert len(fruit) == 3
    assert ('mike' in fruit) is False
    assert ('apple' in fruit) is True


def test_fruit_in_memory_and_pickled():
    fruit = pybloomfilter.BloomFilter(10000, 0.1)
    fruit.add('apple')
    assert 'apple' in fruit
    pickled_fruit = pickle.dumps(fruit)
    unpickled_fruit = pickle.loads(pickled_fruit)
    assert 'apple' in unpickled_fruit


def two_lists():
    apples = pybloomfilter.BloomFilter(1000, 0.01, 'apples.bloom')
    apples.update(['granny smith', 'gala'])
    pears = apples.copy_template('pears.bloom')
    pears.update(['conference', 'williams'])
    return apples, pears


def test_copy_template_and_union():
    apples, pears = two_lists()
    assert 'conference' not in apples
    apples |= pears
    assert all(name in apples for name in ['granny smith', 'gala', 'conference', 'williams'])
    assert 'gala' not in pears


def test_base64():
    apples, _ = two_lists()
    text = apples.to_base64()
    again = pybloomfilter.BloomFilter.from_base64('again.bloom', text)
    assert 'gala' in again
    assert again.data_array == apples.data_array


def test_len_after_union_is_estimated_as_pybloomfiltermmap3_does():
    apples, pears = two_lists()
    apples |= pears
    assert len(apples) == 4 == apples.approx_len


def test_len_after_union_raises_in_the_strict_mode_as_pybloomfiltermmap_did():
    import pybloomfilter.strict as pybloomfilter

    apples = pybloomfilter.BloomFilter(1000, 0.01, 'apples.bloom')
    apples.update(['granny smith', 'gala'])
    assert len(apples) == 2
    pears = apples.copy_template('pears.bloom')
    pears.add('williams')
    apples |= pears
    with pytest.raises(pybloomfilter.IndeterminateCountError, match="unavailable after intersection or union"):
        len(apples)
    assert issubclass(pybloomfilter.IndeterminateCountError, ValueError)
    assert 'williams' in apples
    apples.clear_all()
    assert len(apples) == 0
    assert isinstance(pickle.loads(pickle.dumps(pears)), pybloomfilter.BloomFilter)
