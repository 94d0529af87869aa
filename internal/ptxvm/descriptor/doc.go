// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Package descriptor has what kernels are handed instead of an address: tensor
// maps, textures and surfaces. NVIDIA's are opaque; the form of ours is written down here, where the
// driver that encodes them and the device that reads them meet.
package descriptor
