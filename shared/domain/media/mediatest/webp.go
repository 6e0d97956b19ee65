package mediatest

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// WebPOverCanvas returns a WebP with a 1x1 canvas and a one-byte alpha plane around a lossy 64x64
// picture. Decoders that trust the canvas read past the end of the alpha plane.
func WebPOverCanvas(t testing.TB) []byte {
	t.Helper()
	lossy := read(t, Image{Name: "a.webp", Width: 64, Height: 64}.Make(t))
	at := bytes.Index(lossy, []byte("VP8 "))
	if at < 0 {
		t.Fatal("the encoder made no lossy WebP")
	}
	size := int(binary.LittleEndian.Uint32(lossy[at+4:]))
	const hasAlpha = 0x10
	return webP(webPChunk("VP8X", webPCanvas(hasAlpha, 1, 1)), webPChunk("ALPH", []byte{0, 0xff}),
		webPChunk("VP8 ", lossy[at+8:][:size]))
}

// WebPBomb returns a WebP of about 60 bytes that claims to be 16x16 but contains a lossless,
// single-color picture of 16384x16384.
func WebPBomb() []byte {
	const side = 16384
	picture := []byte{0x2f}
	picture = binary.LittleEndian.AppendUint32(picture, (side-1)|(side-1)<<14)
	// The first three bits mean no transform, no color cache and no code groups. Each of the five codes that follow
	// has a single symbol, so a pixel takes no bits. The bits of a code say: simple, one symbol, a one-bit value, the
	// value.
	bits := []int{0, 0, 0}
	for range 5 {
		bits = append(bits, 1, 0, 0, 0)
	}
	packed := make([]byte, 16)
	for i, bit := range bits {
		packed[i/8] |= byte(bit << (i % 8))
	}
	return webP(webPChunk("VP8X", webPCanvas(0, 16, 16)), webPChunk("VP8L", append(picture, packed...)))
}

func webP(chunks ...[]byte) []byte {
	content := append([]byte("WEBP"), bytes.Join(chunks, nil)...)
	return append(binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(len(content))), content...)
}

func webPChunk(kind string, content []byte) []byte {
	chunk := binary.LittleEndian.AppendUint32([]byte(kind), uint32(len(content)))
	chunk = append(chunk, content...)
	return append(chunk, make([]byte, len(content)%2)...)
}

func webPCanvas(flags byte, width, height uint32) []byte {
	content := []byte{flags, 0, 0, 0}
	for _, side := range []uint32{width - 1, height - 1} {
		content = append(content, byte(side), byte(side>>8), byte(side>>16))
	}
	return content
}
