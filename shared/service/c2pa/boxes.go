package c2pa

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// The library's run time is quadratic in the number of boxes. It takes one to two seconds for
// 20,000 boxes, about as many as in a one-hour fragmented video.
const maxBoxes = 20_000

var errBoxes = errors.New("the file has too many boxes or values")

// checkBoxes fails if an ISO base media file has more than maxBoxes boxes.
func checkBoxes(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("stat the file: %w", err)
	}
	head := make([]byte, 16)
	ends := []int64{info.Size()} // the ends of the file and of the enclosing boxes
	for at, count := int64(0), 0; len(ends) > 0; {
		end := ends[len(ends)-1]
		n, err := file.ReadAt(head[:min(16, max(0, end-at))], at)
		if err != nil && err != io.EOF { //nolint:errorlint // ReaderAt returns it unwrapped
			return fmt.Errorf("read the file: %w", err)
		}
		size, inside := boxSize(head[:n], end-at)
		if size == 0 {
			at, ends = end, ends[:len(ends)-1]
			continue
		}
		if count++; count > maxBoxes {
			return errBoxes
		}
		if inside > 0 && at+inside < end {
			ends, at = append(ends, at+size), at+inside
			continue
		}
		at += size
	}
	return nil
}

// boxSize returns a box's size and the offset of its child boxes. The size is 0 if the box is invalid. The offset is
// 0 if the box has no children.
func boxSize(head []byte, left int64) (size, inside int64) {
	if len(head) < 8 {
		return 0, 0
	}
	size, inside = int64(binary.BigEndian.Uint32(head)), 8
	switch {
	case size == 0:
		size = left
	case size == 1 && len(head) == 16:
		size, inside = int64(binary.BigEndian.Uint64(head[8:])&(1<<62-1)), 16
	}
	if size < inside {
		return 0, 0
	}
	switch string(head[4:8]) {
	case "moov", "trak", "mdia", "minf", "stbl", "dinf", "edts", "udta", "tref", "mvex", "moof", "traf", "mfra", "schi":
	case "meta":
		inside += 4 // version and flags
	default:
		inside = 0
	}
	return min(size, left), inside
}
