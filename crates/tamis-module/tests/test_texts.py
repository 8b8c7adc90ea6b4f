"""What RedisBloom refuses is refused in its words."""

from texts import BEFORE, cases


def test_every_text_is_redisblooms(servers):
    server = servers("COMPATIBLE", "yes")
    wrong = []
    for words, text, _ in cases():
        server.answer("FLUSHALL")
        for line in BEFORE:
            server.answer(*line.split())
        answer = server.answer(*words)
        if answer != f"-{text}\r\n".encode() or server.client().exists("k"):
            wrong.append((words, text, answer))
    assert not wrong


def test_names_of_fields_are_simple_strings(servers):
    server = servers("COMPATIBLE", "yes")
    server.answer("BF.RESERVE", "b", "0.01", "100")
    server.answer("CF.RESERVE", "c", "1024")
    assert server.answer("BF.INFO", "b") == (
        b"*10\r\n+Capacity\r\n:100\r\n+Size\r\n:240\r\n+Number of filters\r\n:1\r\n"
        b"+Number of items inserted\r\n:0\r\n+Expansion rate\r\n:2\r\n"
    )
    assert server.answer("CF.INFO", "c").startswith(b"*16\r\n+Size\r\n:1080\r\n+Number of buckets\r\n:512\r\n")
