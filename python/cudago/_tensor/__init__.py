# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Tensors: made, copied, computed, and exchanged with other libraries."""
