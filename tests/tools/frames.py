"""For perf's Python interpreter: perf script -s frames.py prints each sample's process, thread and time, and of each frame the
address at run time, the name (empty if perf has none) and the file. perf's own text has addresses relative to files."""


def process_event(event):
    sample = event["sample"]
    print(sample["pid"], sample["tid"], sample["time"])
    for frame in event.get("callchain") or [leaf(event)]:
        print(f"\t{frame['ip']:x}\t{frame.get('sym', {}).get('name', '')}\t{frame.get('dso', '')}")


def leaf(event):
    return {"ip": event["sample"]["ip"], "sym": {"name": event.get("symbol", "")}, "dso": event.get("dso", "")}
