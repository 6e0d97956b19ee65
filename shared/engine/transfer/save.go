package transfer

import (
	"errors"
	"io"
	"os"

	"cutroom/shared/domain/fault"
	"cutroom/shared/engine"
)

// saveStep is the number of bytes between checks of the free disk space.
const saveStep = 8 << 20

// Save writes a server's content to the path, which must not exist, and returns the content's length. It reads at
// most one byte beyond the limit. Errors: fault.StorageFull if spec.Free leaves too little space.
func Save(spec engine.Spec, path string, content io.Reader, limit int64) (written int64, err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	for content = io.LimitReader(content, limit+1); ; {
		if spec.Free != nil {
			switch free, err := spec.Free(); {
			case err != nil:
				return written, err
			case free < saveStep:
				return written, fault.New(fault.StorageFull, "The server's disk has no space left for results.")
			}
		}
		n, err := io.CopyN(file, content, saveStep)
		written += n
		if errors.Is(err, io.EOF) {
			return written, nil
		} else if err != nil {
			return written, err
		}
	}
}
