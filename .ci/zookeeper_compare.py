"""Compares a ZooKeeper server's tree with the lines of `arborlog tree dump --json`."""

import base64
import json
import sys
import time

from kazoo.client import KazooClient

STAT = ["czxid", "mzxid", "ctime", "mtime", "version", "cversion", "aversion", "ephemeralOwner", "dataLength",
        "numChildren", "pzxid"]


def number(value):
    return int(value, 0) if isinstance(value, str) else value


def without_config(told):
    """A directory of 3.4 has no /zookeeper/config: its parent has one child fewer, and a count that tells of it."""
    del told["/zookeeper/config"]
    stat = told["/zookeeper"]["stat"]
    stat["numChildren"] = number(stat["numChildren"]) - 1
    stat["cversion"] = number(stat["cversion"]) + 1


def main(hosts, lines, release):
    told = {}
    with open(lines, encoding="utf-8") as file:
        for line in file:
            node = json.loads(line)
            told[node["path"]] = node
    if release == "3.4":
        without_config(told)
    client = KazooClient(hosts=hosts, timeout=10)
    client.start(timeout=60)
    wrong = 0
    found = set()
    todo = ["/"]
    while todo:
        path = todo.pop()
        found.add(path)
        data, stat = client.get(path)
        acls, _ = client.get_acls(path)
        todo += [path.rstrip("/") + "/" + child for child in client.get_children(path)]
        node = told.get(path)
        if node is None:
            print("only the server has", path)
            wrong += 1
            continue
        want = None if node["data"] is None else base64.b64decode(node["data"])
        if (data or b"") != (want or b""):
            print(path, "data", data, want)
            wrong += 1
        for field in STAT:
            server, engine = getattr(stat, field), number(node["stat"][field])
            if server % 2**64 != engine % 2**64:
                print(path, field, server, engine)
                wrong += 1
        server = [(acl.perms, acl.id.scheme, acl.id.id) for acl in acls]
        engine = [(acl["perms"], acl["scheme"], acl["id"]) for acl in node["acl"]]
        if server != (engine or [(31, "world", "anyone")]):
            print(path, "ACL", server, engine)
            wrong += 1
    for path in sorted(set(told) - found):
        print("only the engine has", path)
        wrong += 1
    # What a server writes behind it must lead on.
    if not wrong:
        client.create("/made-by-the-server", b"x")
    client.stop()
    client.close()
    time.sleep(0.2)
    print(len(found), "nodes")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
