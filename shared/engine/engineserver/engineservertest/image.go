package engineservertest

import (
	"encoding/binary"
	"fmt"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine"
)

// The pixels of a reference image follow this header.
const imageBytes = 8

// ParseImage shares the payload's memory. It returns nil to remove the reference image.
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
		return 0, nil, fmt.Errorf("an image of %dx%d has %d bytes", size.Width, size.Height, len(pixels))
	}
	if len(pixels) == 0 {
		return number, nil, nil
	}
	return number, &engine.ReferenceImage{Size: size, Pixels: pixels}, nil
}
