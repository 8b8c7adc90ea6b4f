"""A Java program that answers line by line."""

import contextlib
import subprocess


@contextlib.contextmanager
def running(source, main, class_path, classes):
    """Compiles it and yields a function: words in, the answer out."""
    subprocess.run(["ecj", "-11", "-nowarn", "-proc:none", "-cp", class_path, "-d", classes, source], check=True)
    command = ["java", "-cp", f"{classes}:{class_path}", main]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:

        def call(*words):
            program.stdin.write("\t".join(map(str, words)) + "\n")
            program.stdin.flush()
            answer = program.stdout.readline().strip()
            assert answer, f"{main} ended at {words[0]}"
            return answer

        yield call
        program.stdin.close()
