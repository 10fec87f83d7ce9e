"""The process groups that the collectives of one rank's graph ask for by name."""

import contextlib
import datetime
import os

import torch


@contextlib.contextmanager
def place_in(job):
    """Takes the rank's place: with the processes of the other ranks, which meet in a file, or with FakeProcessGroup.
    `job` is None for a graph without collectives."""
    if job is None:
        yield
        return
    import torch.distributed as dist
    import torch.distributed._functional_collectives  # registers what inductor asks of its operators

    if job["meeting_point"]:
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"  # the processes are on this machine, which may have no name in a network
        backend, store = "gloo", dist.FileStore(job["meeting_point"], job["ranks"])
    else:
        from torch.testing._internal.distributed.fake_pg import FakeStore

        backend, store = "fake", FakeStore()
    timeout = datetime.timedelta(seconds=job["seconds"])
    dist.init_process_group(backend, store=store, rank=job["rank"], world_size=job["ranks"], timeout=timeout)
    for name, members in sorted(job["groups"].items()):  # all ranks make all groups, in one order
        if name == dist.group.WORLD.group_name:
            continue
        group = dist.new_group(members, timeout=timeout)
        if job["rank"] in members:
            torch._C._distributed_c10d._register_process_group(name, group)
    yield
    dist.destroy_process_group()


def wait_for(results):
    """Waits for collectives whose results nobody waited for."""
    for value in results:
        if isinstance(value, torch.Tensor):
            torch.ops._c10d_functional.wait_tensor(value)
