"""What a call costs: 20 arguments of one element and next to no work, under several backends, in turns.

    call.py [--backends eager,aot_eager,partita,inductor]

`eager` is dynamo's own dispatch, with the operator run by PyTorch. The least of many runs counts.
"""

import argparse
import timeit

import torch

from training import named


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--backends", default="eager,aot_eager,partita")
    backends = options.parse_args().backends.split(",")
    torch.set_num_threads(1)
    arguments = [torch.ones(1) for _ in range(20)]
    calls = {}
    with torch.no_grad():
        for backend in backends:
            # A function of its own, since a function's code keeps what it was compiled to.
            function = eval("lambda *xs: torch.cat(xs)", {"torch": torch})
            calls[backend] = torch.compile(function, backend=named(backend))
            calls[backend](*arguments)
        least = dict.fromkeys(backends, float("inf"))
        for _ in range(60):
            for backend, call in calls.items():
                seconds = timeit.timeit(lambda: call(*arguments), number=200) / 200
                least[backend] = min(least[backend], seconds)
    for backend, seconds in least.items():
        print(f"{backend:<10} {seconds * 1e6:6.2f} us, {(seconds - least[backends[0]]) * 1e6:+.2f} to {backends[0]}")


if __name__ == "__main__":
    main()
