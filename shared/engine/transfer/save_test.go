package transfer_test

import (
	"os"
	"path/filepath"
	"testing"

	"cutroom/shared/domain/fault"
	"cutroom/shared/engine"
	"cutroom/shared/engine/transfer"
)

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestDownloadsLeaveTheDiskFree(t *testing.T) {
	const disk = 30 << 20
	path := filepath.Join(t.TempDir(), "generated.mp4")
	spec := engine.Spec{Free: func() (int64, error) {
		info, err := os.Stat(path)
		if err != nil {
			return 0, err
		}
		return disk - info.Size(), nil
	}}
	written, err := transfer.Save(spec, path, endless{}, 2<<30)
	if !fault.Is(err, fault.StorageFull) || written == 0 || written > disk {
		t.Errorf("%d bytes were written to a disk with %d bytes free, then %v", written, disk, err)
	}
}
