# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin of cudago: a driver per run, fixtures, and tests that do not break each other.

pytest loads it in every run of an environment that has cudago. So it imports nothing of cudago, and
does nothing, until a run has one of its options or a test one of its fixtures. That is also why it
is no part of the package `cudago`, whose import loads the native module. And with a pytest that is
too old for it, it is empty, where it would otherwise end every run.
"""

import pytest

if getattr(pytest, "version_tuple", (0,)) >= (8,):
    from .fixtures import cu_device as cu_device
    from .fixtures import cu_no_leaks as cu_no_leaks
    from .fixtures import cu_stream as cu_stream
    from .hooks import pytest_addoption as pytest_addoption
    from .hooks import pytest_cmdline_main as pytest_cmdline_main
    from .hooks import pytest_configure as pytest_configure
    from .hooks import pytest_fixture_setup as pytest_fixture_setup
    from .hooks import pytest_load_initial_conftests as pytest_load_initial_conftests
    from .hooks import pytest_report_header as pytest_report_header
    from .hooks import pytest_runtest_call as pytest_runtest_call
    from .hooks import pytest_runtest_makereport as pytest_runtest_makereport
    from .hooks import pytest_runtest_setup as pytest_runtest_setup
    from .hooks import pytest_runtest_teardown as pytest_runtest_teardown
    from .hooks import pytest_terminal_summary as pytest_terminal_summary
    from .hooks import pytest_unconfigure as pytest_unconfigure
