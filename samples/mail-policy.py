#!/usr/bin/env python3
"""A Postfix policy service that asks `tamis serve`: mail-policy.py http://127.0.0.1:7654/v1/filters/blocked/check

Postfix sends each request as lines of name=value, ends it with an empty line, and waits for an action. A sender that may
be on the list is held for somebody to look at. For everyone else, and whenever the filter does not answer, the action
is DUNNO, and Postfix goes on with its other rules.
"""

import http.client
import sys
import urllib.request


def may_be_blocked(url, sender):
    request = urllib.request.Request(url, data=f"{sender}\n".encode(), headers={"Content-Type": "text/plain"})
    with urllib.request.urlopen(request, timeout=2) as answer:
        return answer.read() == b"yes\n"


def action(url, sender):
    try:
        return "HOLD the sender may be on the block list" if may_be_blocked(url, sender) else "DUNNO"
    except (OSError, http.client.HTTPException) as error:
        print(f"mail-policy: no answer, so the mail passes: {error}", file=sys.stderr)
        return "DUNNO"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    url = sys.argv[1]
    request = {}
    for line in sys.stdin:
        name, equals, value = line.rstrip("\r\n").partition("=")
        if equals:
            request[name] = value
        elif request:
            print(f"action={action(url, request.get('sender', ''))}\n", flush=True)
            request = {}


main()
