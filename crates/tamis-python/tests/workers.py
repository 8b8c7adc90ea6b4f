"""What tests have done by processes that are spawned: these import this file, and not the libraries of a test's."""

import tamis


def add_to_shared_window(name):
    with tamis.Window.open("shared.tamis", "r+") as window:
        for second in range(0, 100, 5):
            window.update([f"{name} {second} {i}" for i in range(50)], at=second)
        return window.add("once", at=100)
