package media

import (
	"bytes"
	"testing"
)

// Reading such a file entirely could take hours or gigabytes of memory, even if the file is small.
func TestHostileHEIFIsReadPartially(t *testing.T) {
	content := append([]byte{0, 0, 0, 0, 255, 255, 255, 255}, bytes.Repeat([]byte{255}, 1<<16)...)
	w := &window{source: bytes.NewReader(content), size: int64(len(content)), thorough: true}
	if got := assigned(w, box{"ipma", 0, 8}, 0xffff); got != nil {
		t.Errorf("an empty box assigned %d properties, want none", len(got))
	}
	content = bytes.Repeat([]byte{0, 0, 0, 8, 'f', 'r', 'e', 'e'}, maxBoxes)
	w = &window{source: bytes.NewReader(content), size: int64(len(content)), thorough: true}
	count := 0
	for range 2 * maxAllBoxes / maxBoxes {
		for range boxes(w, 0, w.size) {
			count++
		}
	}
	if count > maxAllBoxes {
		t.Errorf("read %d boxes, more than %d", count, maxAllBoxes)
	}
}
