# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What is recorded of a GPU: families of instructions and of programs, and their results as text.

The programs next to this package, ``run.py`` and ``golden.py``, and the tests share it.
"""
