# Copyright (c) the gpu-provision authors
# SPDX-License-Identifier: Apache-2.0
"""Snapshots of a host: what is needed to put packages, holds, files and settings back as they were."""
