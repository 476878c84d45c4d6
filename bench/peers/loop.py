"""The library of Apprise in a loop: sends each line of the standard input, and writes whether that worked."""
import sys

import apprise

service = apprise.Apprise()
service.add(sys.argv[1])
for line in sys.stdin:
    print("ok" if service.notify(body=line.strip()) else "failed", flush=True)
