# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0

PYTHON ?= python3.11

.PHONY: build
build: ## build the native module in place
	$(PYTHON) build_hooks/extension.py
