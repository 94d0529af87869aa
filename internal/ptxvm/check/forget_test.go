// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptxvm"
	"github.com/cudago/cudago/internal/ptxvm/check"
	"github.com/cudago/cudago/internal/ptxvm/vmtest"
)

// A host that waits has the traces of all memory forgotten, and looks at each range
// for that; a kernel looks at a range while it is checked whose lanes access two.
func TestTracesAreForgottenWhileAKernelRuns(t *testing.T) {
	const patience = time.Minute
	d := ptxvm.NewDevice(ptxvm.Config{})
	defer d.Close()
	k := vmtest.Kernel(t, vmtest.Load(t, d, "test", checkHead+`
	and.b32 %v, %t, 1;
	setp.eq.u32 %c, %v, 0;
	selp.b64 %y, %a, %o, %c;
	add.u64 %y, %y, %q;
	mov.u32 %w, 0;
again:
	st.global.u32 [%y], %w;
	add.u32 %w, %w, 1;
	setp.lt.u32 %c, %w, 2000;
	@%c bra again;
	ret;
}
`), "k")
	p, o := vmtest.Zeroed(t, d, 4096), vmtest.Zeroed(t, d, 4096)
	var found []string
	v := vmtest.Watching(&found)
	v.Checks = check.Races
	ended := make(chan error, 1)
	go func() {
		ended <- k.Launch(&ptxvm.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{64, 1, 1}, DynamicShared: 256, Params: vmtest.Pack(p, o), Watch: v})
	}()
	var host sync.WaitGroup
	stop := make(chan struct{})
	host.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				d.Memory().ForgetTraces(0)
			}
		}
	})
	select {
	case err := <-ended:
		close(stop)
		host.Wait()
		require.NoError(t, err)
		require.Empty(t, found)
	case <-time.After(patience):
		t.Fatal("the kernel and the host wait for each other")
	}
}
