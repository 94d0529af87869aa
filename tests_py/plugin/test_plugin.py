# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin, in runs of projects that use it, and of one that does not."""

from __future__ import annotations

import textwrap
import tomllib
from importlib.metadata import PackageNotFoundError, entry_points
from importlib.util import find_spec

import pytest

import cudago_pytest
import cudago_pytest.hooks

from ..installed import ROOT, python_blocks

pytest_plugins = ["pytester"]

PTX = """
KERNELS = '''
.version 7.0
.target sm_50
.address_size 64
.visible .entry store(.param .u64 p) {
    .reg .b64 %a; .reg .b32 %v;
    ld.param.u64 %a, [p];
    mov.b32 %v, 7;
    st.global.u32 [%a], %v;
    ret;
}
.visible .entry copy(.param .u64 from, .param .u64 to) {
    .reg .b64 %a, %b; .reg .b32 %v;
    ld.param.u64 %a, [from];
    ld.param.u64 %b, [to];
    ld.global.u32 %v, [%a];
    st.global.u32 [%b], %v;
    ret;
}
'''
"""
KERNELS = f"""
import cudago as cu, pytest
{PTX}
ONE = cu.LaunchConfig(grid=1, block=1)

@pytest.fixture(scope="session")
def code():
    return cu.Program(KERNELS, "ptx").compile()
"""
BREAKING = """
def test_breaks(cu_stream, code):
    cu.launch(cu_stream, ONE, code["store"], None)
"""
WORKING = """
def test_works(cu_device, cu_stream, code):
    with cu_device.allocate(4, stream=cu_stream) as buffer:
        out = bytearray(4)
        cu.launch(cu_stream, ONE, code["store"], buffer)
        buffer.copy_to(out, stream=cu_stream)
        cu_stream.sync()
        assert out[0] == 7
"""
UNWRITTEN = """
def test_reads_what_nobody_wrote(cu_device, cu_stream, code):
    x, y = (cu_device.allocate(4, stream=cu_stream) for _ in range(2))
    cu.launch(cu_stream, ONE, code["copy"], x, y)
"""


def test_it_is_an_entry_point():
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    assert told["pytest11"] == {"cudago_pytest": "cudago_pytest"}
    found = [e.value for e in entry_points(group="pytest11") if e.name == "cudago_pytest"]
    assert found in ([], ["cudago_pytest"])  # not installed, or as told
    try:
        assert find_spec("cudago_pytest") is not None
    except PackageNotFoundError:
        pytest.fail("the plugin cannot be found")


def test_a_project_without_cudago_sees_nothing_of_it(pytester, project):
    pytester.makepyfile(
        """
        import sys, pytest

        @pytest.mark.gpu
        def test_own_marker(request):
            assert not [name for name in sys.modules if name.split(".")[0] == "cudago"]
        """
    )
    pytester.makeini("[pytest]\nmarkers = gpu: of this project")
    result = project()
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*cudago: driver*")
    result.stdout.no_fnmatch_line("gpu tests:*")


def test_it_is_empty_for_an_old_pytest(script):
    run = script(
        f"""
        import sys, pytest
        sys.path.append({str(ROOT / "python")!r})
        pytest.version_tuple = (7, 4, 4)
        import cudago_pytest
        print([name for name in vars(cudago_pytest) if name.startswith(("cu_", "pytest_"))])
        """
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "[]\n", "")


def test_every_hook_is_known_to_pytest():
    hooks = {name for name in vars(cudago_pytest.hooks) if name.startswith("pytest_")}
    assert hooks == {name for name in vars(cudago_pytest) if name.startswith("pytest_")}


def test_fixtures_need_no_option(pytester, project):
    pytester.makepyfile(KERNELS + WORKING)
    project().assert_outcomes(passed=1)


def test_a_driver_is_chosen_before_a_conftest_uses_it(pytester, project, monkeypatch):
    monkeypatch.setenv("CUDAGO_DRIVER", "nvidia")
    pytester.makeconftest("import cudago; NAME = cudago.driver_name()")
    pytester.makepyfile(
        """
        import os, conftest
        def test_driver():
            assert (conftest.NAME, os.environ["CUDAGO_DRIVER"]) == ("sim", "sim")
        """
    )
    result = project("--cudago-driver=sim", "--cudago-seed=7")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["cudago: driver sim, simulated with seed=7"])


def test_a_fault_fails_its_test_and_no_other(pytester, project):
    pytester.makepyfile(KERNELS + BREAKING + WORKING)
    result = project()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "work of the test failed: DeviceFaultError: *illegal address in kernel store*",
            "*device 0 was reset: what tests had there is lost",
            "FAILED *::test_breaks*",
        ]
    )


@pytest.mark.parametrize("name", ["cu_stream", "cu_device"])
def test_a_fault_fails_a_test_that_asks_for_a_fixture_by_name(pytester, project, name):
    asking = f"""
def test_breaks(request, code):
    found = request.getfixturevalue({name!r})
    cu.launch(getattr(found, "default_stream", found), ONE, code["store"], None)
"""
    pytester.makepyfile(KERNELS + asking + WORKING)
    project().assert_outcomes(passed=1, failed=1)


def test_what_a_test_puts_in_the_place_of_cudago_is_not_asked(pytester, project):
    replacing = """
def test_replaces(cu_stream, code, monkeypatch):
    import sys, types
    stub = types.ModuleType("cudago")
    stub.CUDAError = ValueError
    monkeypatch.setitem(sys.modules, "cudago", stub)
    monkeypatch.delitem(sys.modules, "cudago._ordinal")
"""
    pytester.makepyfile(KERNELS + replacing + WORKING)
    project().assert_outcomes(passed=2)


def test_a_fault_that_its_test_saw_is_mended_too(pytester, project):
    pytester.makepyfile(KERNELS + BREAKING + "    cu_stream.sync()\n" + WORKING)
    result = project()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*device 0 was reset: what tests had there is lost"])


def test_a_fault_that_is_expected_is_mended_by_its_test(pytester, project):
    expecting = """
def test_expects(cu_device, cu_stream, code):
    cu.launch(cu_stream, ONE, code["store"], None)
    with pytest.raises(cu.DeviceFaultError):
        cu_stream.sync()
    cu_device.reset()
"""
    pytester.makepyfile(KERNELS + expecting + WORKING)
    project().assert_outcomes(passed=2)


def test_a_fault_of_a_fixture_is_an_error_of_its_test(pytester, project):
    fixture = """
@pytest.fixture
def late(cu_device, code):
    yield
    cu.launch(cu_device.default_stream, ONE, code["store"], None)

def test_uses(late):
    pass
"""
    pytester.makepyfile(KERNELS + fixture + WORKING)
    result = project()
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["ERROR *::test_uses*"])


def test_a_device_that_cannot_be_reset_is_reported(pytester, project):
    holding = "HELD = cu.PinnedMemoryResource().allocate(64)\n"
    pytester.makepyfile(KERNELS + holding + BREAKING)
    result = project()
    result.assert_outcomes(failed=1, errors=1)  # its teardown finds the device broken too
    result.stdout.fnmatch_lines(["*device 0 could not be reset, and stays broken: *"])


def test_checks_fail_the_test_that_has_the_defect(pytester, project):
    pytester.makepyfile(KERNELS + UNWRITTEN + WORKING)
    project().assert_outcomes(passed=2)
    result = project("--cudago-check")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "cudago: driver sim, simulated with check=full",
            "work of the test failed: CheckError: *",
            "*uninitialized read in kernel copy*",
            "FAILED *::test_reads_what_nobody_wrote*",
        ]
    )


def test_checks_choose_the_simulated_driver(pytester, project, monkeypatch):
    monkeypatch.delenv("CUDAGO_DRIVER")
    pytester.makepyfile(KERNELS + UNWRITTEN)
    project("--cudago-check").assert_outcomes(failed=1)
    result = project("--cudago-check", "--cudago-driver=nvidia")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "--cudago-check is of the simulated driver" in result.stderr.str()


def test_leaks_are_named(pytester, project):
    pytester.makepyfile(
        """
        KEPT = []
        def test_leaks(cu_device, cu_stream, cu_no_leaks):
            KEPT.append(cu_device.allocate(4321, stream=cu_stream))
        def test_does_not(cu_stream, cu_no_leaks):
            cu_stream.device.allocate(64, stream=cu_stream).fill(0, stream=cu_stream)
        def test_frees(cu_stream, cu_no_leaks):
            KEPT.clear()
        """
    )
    result = project()
    result.assert_outcomes(passed=3, errors=1)
    result.stdout.fnmatch_lines(
        ["*leaves objects open: Buffer: 0 before, 1 after (<cudago.Buffer 0x*: 4321 bytes*"]
    )


def test_what_a_fixture_that_skips_keeps_is_no_leak(pytester, project):
    pytester.makepyfile(
        """
        import pytest
        @pytest.fixture
        def skipping(cu_device, cu_stream):
            kept = cu_device.allocate(64, stream=cu_stream)
            pytest.skip("not here")
        def test_is_not_reached(cu_no_leaks, skipping):
            pass
        """
    )
    project().assert_outcomes(skipped=1)


def test_what_others_keep_until_later_is_no_leak(pytester, project):
    pytester.makepyfile(
        """
        import cudago as cu, pytest, unittest
        @pytest.fixture(scope="module")
        def inner(cu_device):
            return cu.zeros(8, stream=cu_device.default_stream)
        @pytest.fixture(scope="module")
        def late(request, cu_device):
            return request.getfixturevalue("inner"), cu_device.create_event()
        @pytest.fixture
        def uses(request):
            return request.getfixturevalue("late")
        KEPT = []
        def test_leaks_beside(cu_no_leaks, uses):
            KEPT.append(cu.zeros(8, stream=cu.Device().default_stream))
        def test_uses(cu_no_leaks, uses): pass
        class TestClass:
            @pytest.fixture(autouse=True)
            def made(self, cu_stream):
                self.t = cu.zeros(3, stream=cu_stream)
                yield
                assert self.t.shape == (3,)
            def test_attribute(self, cu_no_leaks): self.u = self.t[1:]
        @pytest.mark.usefixtures("cu_no_leaks")
        class TestCase(unittest.TestCase):
            def setUp(self): self.t = cu.zeros(3, stream=cu.Device().default_stream)
            def test_attribute(self): self.u = self.t[1:]
            def test_leaks(self): KEPT.append(self.t)
        """
    )
    result = project()
    result.assert_outcomes(passed=5, errors=2)
    result.stdout.fnmatch_lines(
        ["*leaves objects open: Buffer: * Tensor: 1 new *", "ERROR *::test_leaks_beside*"]
    )
    result.stdout.fnmatch_lines(["ERROR *::TestCase::test_leaks*"])


def test_a_leak_that_cannot_be_shown_is_named(pytester, project):
    pytester.makepyfile(
        """
        import cudago as cu
        KEPT = []
        class Bad(cu.MemoryResource):
            def allocate(self, size, *, stream): pass
            def __repr__(self): raise RuntimeError("shows nothing")
        def test_leaks(cu_no_leaks):
            KEPT.append(Bad())
        """
    )
    result = project()
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*leaves objects open: Bad: 1 new (<*.Bad object at 0x*>)"])


REPLACING = """
KEPT = []
def make(device, stream):
    return [{}]
def test_makes(cu_device, for_all):
    KEPT.extend(make(cu_device, for_all))
def test_replaces(cu_device, for_all, cu_no_leaks):
    KEPT.clear()
    KEPT.extend(make(cu_device, for_all))
def test_uses(cu_no_leaks):
    assert len(KEPT) == 1
"""
FOR_ALL = """
import cudago as cu, pytest
@pytest.fixture(scope="module")
def for_all(cu_device):
    with cu_device.create_stream() as stream:
        yield stream
    KEPT.clear()
"""


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        ("device.create_event()", "Event"),
        ("device.allocate(64, stream=stream)", "Buffer"),
        ("cu.zeros(3, stream=stream)", "Tensor"),
        ("cu.Graph(device)", "Graph"),
        ("cu.Graph(device).instantiate()", "GraphExec"),
    ],
)
def test_what_takes_the_place_of_another_is_a_leak(pytester, project, made, kind):
    pytester.makepyfile(FOR_ALL + REPLACING.format(made))
    result = project()
    result.assert_outcomes(passed=3, errors=1)
    result.stdout.fnmatch_lines(
        [f"*leaves objects open: {kind}: 1 new (<*{kind}*)*", "ERROR *::test_replaces*"]
    )


def test_what_a_failed_test_keeps_is_no_leak(pytester, project):
    pytester.makepyfile(
        """
        import pytest
        def test_fails(cu_device, cu_stream, cu_no_leaks):
            kept = cu_device.allocate(64, stream=cu_stream)
            assert kept.size == 0

        @pytest.fixture
        def failing(cu_device, cu_stream):
            kept = cu_device.allocate(64, stream=cu_stream)
            assert kept.size == 0
        def test_is_not_reached(cu_no_leaks, failing):
            pass
        """
    )
    project().assert_outcomes(failed=1, errors=1)


GPU = """
import pytest
@pytest.mark.gpu
def test_needs(cu_stream):
    pass
@pytest.mark.gpu
def test_has_no_fixture():
    pass
def test_any():
    pass
"""


@pytest.mark.parametrize("option", ["--strict-markers", "-Werror"])
def test_the_marker_needs_no_option(pytester, project, option):
    pytester.makepyfile(GPU)
    project(option).assert_outcomes(passed=2, skipped=1)  # the one with a fixture
    project("--markers").stdout.fnmatch_lines(["@pytest.mark.gpu: *needs NVIDIA's driver*"])


def test_the_marker_is_not_for_projects_that_do_not_ask_for_the_plugin(pytester, project):
    """What a project refuses by --strict-markers must not depend on what is installed."""
    pytester.makeconftest("pytest_plugins = ['cudago_pytest']")  # where no entry point loads it
    pytester.makepyfile("import pytest\n@pytest.mark.gpu\ndef test_it(): pass")
    run = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--strict-markers")
    run.stdout.fnmatch_lines(["*'gpu' not found in `markers` configuration option"])
    assert run.ret != 0
    for asked in ("-p", "cudago_pytest"), ("--cudago-driver=sim",):
        run = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--strict-markers", *asked)
        assert run.ret == 0, asked


@pytest.mark.parametrize("seed", [-1, 2**64, 10**22])
def test_a_seed_out_of_range_ends_the_run(pytester, project, seed):
    pytester.makepyfile(GPU)
    result = project(f"--cudago-seed={seed}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"--cudago-seed must be 0 to 2**64 - 1, got {seed}" in result.stderr.str()


def test_tests_that_need_a_gpu_are_skipped_and_counted(pytester, project):
    pytester.makepyfile(GPU)
    result = project("--cudago-driver=sim", "--strict-markers")
    result.assert_outcomes(passed=1, skipped=2)
    result.stdout.fnmatch_lines(
        ["gpu tests: 0 ran, 2 skipped", "SKIPPED*needs NVIDIA's driver; this run is on the sim*"]
    )


def test_only_tests_with_the_marker_are_counted(pytester, project):
    folder = pytester.mkpydir("gpu")
    (folder / "test_gpu.py").write_text("def test_any(cu_stream): pass")
    result = project("--cudago-driver=sim")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("gpu tests:*")


def test_without_a_driver_its_tests_are_skipped_or_fail(pytester, project, monkeypatch):
    monkeypatch.setenv("CUDAGO_LIBCUDA", "/nowhere/libcuda.so")
    pytester.makepyfile(GPU + WORKING.replace("code):", "cu_no_leaks):"))
    result = project("--cudago-driver=nvidia")
    result.assert_outcomes(passed=1, skipped=3)
    result.stdout.fnmatch_lines(["SKIPPED*no usable CUDA driver*/nowhere/libcuda.so*"])
    monkeypatch.setenv("CUDAGO_REQUIRE_GPU", "1")
    result = project("--cudago-driver=nvidia")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert result.parseoutcomes()["errors"] == 3


def test_both_drivers_are_two_runs(pytester, project, monkeypatch):
    monkeypatch.setenv("CUDAGO_LIBCUDA", "/nowhere/libcuda.so")
    pytester.makepyfile(KERNELS + WORKING + UNWRITTEN)
    result = project("--cudago-driver=both", "--cudago-check")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "cudago: run on the driver 'sim'",
            "*1 failed, 1 passed*",
            "cudago: run on the driver 'nvidia'",
            "*2 skipped*",
        ]
    )


def test_processes_of_xdist(pytester, project):
    pytest.importorskip("xdist")
    pytester.makepyfile(KERNELS + BREAKING + WORKING * 2 + UNWRITTEN, test_other=GPU)
    result = project("-n2", "--cudago-check", "--cudago-seed=3")
    result.assert_outcomes(passed=2, failed=2, skipped=2)
    result.stdout.fnmatch_lines(["gpu tests: 0 ran, 2 skipped"])


def test_the_example(pytester, project):
    for file in (ROOT / "examples" / "tested").iterdir():
        if file.is_file():
            (pytester.path / file.name).write_bytes(file.read_bytes())
    result = project()
    result.assert_outcomes(passed=5, skipped=1)
    (pytester.path / "scaling.py").write_text(
        (pytester.path / "scaling.py").read_text().replace("if (i < n)", "if (i <= n)")
    )
    result = project()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*DeviceFaultError: *illegal address in kernel scale*"])


def test_the_program_of_the_guide(pytester, project):
    page = (ROOT / "docs" / "guide" / "testing.rst").read_text()
    pytester.makepyfile("\n".join(map(textwrap.dedent, python_blocks(page))))
    project("--cudago-driver=sim").assert_outcomes(passed=1, skipped=1)


@pytest.mark.gpu
def test_on_a_gpu(device, pytester, project):
    pytester.makepyfile(KERNELS + WORKING + GPU)
    result = project("--cudago-driver=nvidia")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["gpu tests: 2 ran, 0 skipped"])
