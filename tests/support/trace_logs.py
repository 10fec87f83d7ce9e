"""Trace logs of PyTorch taken apart and put together again, with the sums of their payloads."""
import hashlib, re


def records(text):
    """(line, payload) of each record, the payload without tabs and its last newline; None: it has none."""
    out = []
    for line in text.split("\n"):
        if line.startswith("\t"):
            out[-1][1] = line[1:] if out[-1][1] is None else out[-1][1] + "\n" + line[1:]
        elif line:
            out.append([line, None])
    return out


def log(found):
    text = ""
    for line, payload in found:
        if payload is not None:
            sum_of = hashlib.md5(payload.encode()).hexdigest()
            line = re.sub(r'"has_payload": "[0-9a-f]*"', f'"has_payload": "{sum_of}"', line)
        text += line + "\n" + ("" if payload is None else "".join(f"\t{l}\n" for l in payload.split("\n")))
    return text
