# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The version. The wheel takes it from here, and the native module is built with it."""

__version__ = "0.1.0"
