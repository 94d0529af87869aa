# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""How long what other processes share is there: handles, and what a process that dies had."""

from __future__ import annotations


def test_a_pool_beside_its_handle(two):
    assert two(
        """
        def child(pipe, pool, handle):
            with cu.DeviceMemoryResource.from_allocation_handle(cu.Device(), handle) as other:
                print(pool.is_closed, other.is_closed, handle.is_closed, flush=True)
            pipe.send("imported")

        def parent():
            device, stream, pool, buffer = shared()
            process, pipe = main(child, pool, pool.get_allocation_handle())
            pipe.recv()
            process.join()
            print(process.exitcode)
        """
    ) == ["False False False", "0"]


def test_an_importer_that_has_forked_and_dies(two):
    """Its forked child must not keep what it had imported."""
    assert two(
        """
        def child(pipe, buffer):
            forked = os.fork()
            if not forked:
                os.close(pipe.fileno())
                time.sleep(60)
                os._exit(0)
            pipe.send(forked)
            pipe.recv()
            os.kill(os.getpid(), signal.SIGKILL)

        def parent():
            device, stream, pool, buffer = shared()
            process, pipe = main(child, buffer)
            forked = pipe.recv()
            buffer.close()
            settle()
            print(pool.statistics.used > 0)
            pipe.send("die")
            process.join()
            settle()
            stream.sync()
            print(process.exitcode, pool.statistics.used)
            os.kill(forked, signal.SIGKILL)
        """
    ) == ["True", "-9 0"]
