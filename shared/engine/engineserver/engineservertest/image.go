package engineservertest

import (
	"encoding/binary"
	"fmt"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine"
)

// imageBytes is the size of the header before a reference image's pixels.
const imageBytes = 8

// ParseImage parses a message that sets or removes the reference image. reference is nil if the image is removed.
// Otherwise it shares the payload's memory.
func ParseImage(payload []byte) (number uint32, reference *engine.ReferenceImage, err error) {
	if len(payload) < imageBytes {
		return 0, nil, fmt.Errorf("the image message has %d bytes", len(payload))
	}
	number = binary.BigEndian.Uint32(payload)
	size := catalog.Size{
		Width: int(binary.BigEndian.Uint16(payload[4:])), Height: int(binary.BigEndian.Uint16(payload[6:])),
	}
	pixels := payload[imageBytes:]
	if len(pixels) != 4*size.Width*size.Height {
		return 0, nil, fmt.Errorf("invalid image: %dx%d with %d bytes", size.Width, size.Height, len(pixels))
	}
	if len(pixels) == 0 {
		return number, nil, nil
	}
	return number, &engine.ReferenceImage{Size: size, Pixels: pixels}, nil
}
